# error spec.elsewhere at line 9: takes_what_comes_next takes what comes next of SCALES; it is traced once, on a CPU
import torch

SCALES = iter([0.125] * 1000 + [0.25])


def takes_what_comes_next(q, k, v):
    scale = 0.0
    for scale in SCALES:
        break
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
