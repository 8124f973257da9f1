# error spec.elsewhere at line 6: _factor asks for device.type
import torch


def _factor(q):
    return 0.25 if q.device.type == "cuda" else 0.125


def asks_a_helper_for_the_device(q, k, v):
    return (q @ k.mT * _factor(q)).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
