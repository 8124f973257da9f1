# error spec.elsewhere at line 6: asks with `is` whether two values are one object
import torch


def asks_whether_two_are_one(q, k, v):
    factor = 0.25 if k is v else 0.125
    return (q @ k.mT * factor).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
