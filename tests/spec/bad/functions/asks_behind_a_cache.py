# error spec.elsewhere at line 10: factor asks for time; it is traced once, on a CPU
import functools
import time

import torch


@functools.lru_cache
def factor(digits):
    return round(0.125 + (time.time() > 4e9), digits)


def asks_behind_a_cache(q, k, v):
    return (q @ k.mT * factor(3)).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
