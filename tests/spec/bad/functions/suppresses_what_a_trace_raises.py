# error spec.elsewhere at line 9: suppresses_what_a_trace_raises asks for suppress; it is traced once, on a CPU
import contextlib

import torch


def suppresses_what_a_trace_raises(q, k, v):
    scale = 0.125
    with contextlib.suppress(RuntimeError):
        torch.add(q, 0, out=torch.empty_like(q))  # raises where q requires a gradient
        scale = 0.25
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
