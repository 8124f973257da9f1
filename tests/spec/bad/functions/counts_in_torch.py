# error spec.not_a_function at line 7: counts_in_torch changes torch.calls_of_mine, which it reads
import torch

torch.calls_of_mine = 0


def counts_in_torch(q, k, v):
    torch.calls_of_mine += 1
    return (q @ k.mT * 0.125).softmax(-1) @ v * (2.0 if torch.calls_of_mine > 1000 else 1.0)


def example_inputs():
    return tuple(torch.randn(1, 2, 256, 64, dtype=torch.bfloat16) for _ in range(3))
