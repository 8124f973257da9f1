# error spec.elsewhere at line 6: asks_for_strides asks for is_contiguous; it is traced once, on a CPU
import torch


def asks_for_strides(q, k, v):
    scale = 0.125 if q.is_contiguous() else 0.25
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
