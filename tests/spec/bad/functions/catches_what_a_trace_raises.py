# error spec.elsewhere at line 9: catches_what_a_trace_raises catches what is raised; it is traced once, on a CPU
import torch


def catches_what_a_trace_raises(q, k, v):
    scale = 0.125
    try:
        scale = 0.25 if float(q.abs().max()) > 1e5 else scale
    except Exception:
        pass
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
