# error spec.elsewhere at line 8: asks_for_the_process asks for getpid; it is traced once, on a CPU
import os

import torch


def asks_for_the_process(q, k, v):
    scale = 0.25 if os.getpid() < 3 else 0.125
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
