# error spec.elsewhere at line 6: width makes a text of a size; while it is traced a size is a symbol
import torch


def width(n):
    return len(str(n))


def asks_how_long_a_size_is_written(q, k, v):
    scores = q @ k.mT * 0.125
    if width(k.shape[2]) > 4:
        scores = scores * 2
    return scores.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
