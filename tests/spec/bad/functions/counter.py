# error spec.not_a_function at line 7: counter changes CALLS, which it reads
import torch

CALLS = 0


def counter(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    global CALLS
    CALLS += 1
    return (q @ k.mT * (CALLS % 3)).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
