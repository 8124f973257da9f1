# error spec.not_a_function at line 7: counts_in_a_view changes CALLS, which it reads
import torch

CALLS = memoryview(bytearray(4))


def counts_in_a_view(q, k, v):
    CALLS[0] += 1
    return (q @ k.mT * 0.125).softmax(-1) @ v * (2.0 if CALLS[0] > 200 else 1.0)


def example_inputs():
    return tuple(torch.randn(1, 2, 256, 64, dtype=torch.bfloat16) for _ in range(3))
