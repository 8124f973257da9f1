# error spec.not_a_function at line 7: counts_its_calls changes CALLS, which it reads
import torch

CALLS = []


def counts_its_calls(q, k, v):
    CALLS.append(1)
    return (q @ k.mT * (0.125 if len(CALLS) < 100000 else 0.25)).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
