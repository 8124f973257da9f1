# error spec.elsewhere at line 6: puts it into a set, which asks which tensors are one object
import torch


def asks_how_many_there_are(q, k, v):
    factor = 0.125 * (len({q, k, v}) - 2)
    return (q @ k.mT * factor).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
