# error spec.elsewhere at line 6: asks_for_a_type asks for type; it is traced once, on a CPU
import torch


def asks_for_a_type(q, k, v):
    if type(k.shape[2]) is int and k.shape[2] > 5000:
        k = k * 2
    return (q @ k.mT * 0.125).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
