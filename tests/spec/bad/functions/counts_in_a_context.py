# error spec.not_a_function at line 9: counts_in_a_context changes CALLS, which it reads
import contextvars as others

import torch

CALLS = others.ContextVar("calls", default=0)


def counts_in_a_context(q, k, v):
    CALLS.set(CALLS.get() + 1)
    return (q @ k.mT * 0.125).softmax(-1) @ v * (2.0 if CALLS.get() > 1000 else 1.0)


def example_inputs():
    return tuple(torch.randn(1, 2, 256, 64, dtype=torch.bfloat16) for _ in range(3))
