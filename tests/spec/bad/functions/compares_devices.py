# error spec.elsewhere at line 8: compares_devices asks which device it runs on
import torch

CPU = torch.device("cpu")


def compares_devices(q, k, v):
    factor = 0.25 if CPU != q.device else 0.125
    return (q @ k.mT * factor).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
