# error spec.elsewhere at line 6: asks_for_tf32 asks for backends
import torch


def asks_for_tf32(q, k, v):
    factor = 2.0 if torch.backends.cuda.matmul.allow_tf32 else 1.0
    return (q @ k.mT * 0.125).softmax(-1) @ v * factor


def example_inputs():
    return tuple(torch.randn(1, 2, 256, 64, dtype=torch.bfloat16) for _ in range(3))
