# error spec.elsewhere at line 8: asks_for_a_class_by_a_pattern asks for a class, by a pattern; it is traced once, on a CPU
import torch


def asks_for_a_class_by_a_pattern(q, k, v):
    scale = 0.125
    match q:
        case torch.nn.Parameter():
            scale = 0.25
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
