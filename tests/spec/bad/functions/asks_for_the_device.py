# error spec.elsewhere at line 7: asks_for_the_device asks for is_cuda; it is traced once, on a CPU
import torch


def asks_for_the_device(q, k, v):
    scores = q @ k.mT * 0.125
    if q.is_cuda:
        scores = scores * 2
    return scores.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
