# error spec.elsewhere at line 8: asks_for_random_numbers asks for random; it is traced once, on a CPU
import random

import torch


def asks_for_random_numbers(q, k, v):
    scale = 0.25 if random.random() < 1e-6 else 0.125
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
