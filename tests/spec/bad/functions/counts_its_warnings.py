# error spec.elsewhere at line 8: counts_its_warnings asks for catch_warnings; it is traced once, on a CPU
import warnings

import torch


def counts_its_warnings(q, k, v):
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("once")
    scale = 0.125 * (1 + len(caught))  # a process that shows none has another number
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
