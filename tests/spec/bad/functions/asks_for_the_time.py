# error spec.elsewhere at line 8: asks_for_the_time asks for time; it is traced once, on a CPU
import time

import torch


def asks_for_the_time(q, k, v):
    scale = 0.125 if time.time() < 4e9 else 0.25
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
