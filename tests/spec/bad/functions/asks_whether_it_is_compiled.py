# error spec.elsewhere at line 7: asks_whether_it_is_compiled asks for is_compiling
import torch


def asks_whether_it_is_compiled(q, k, v):
    scores = q @ k.mT * 0.125
    if not torch.compiler.is_compiling() and q.shape[2] > 40000:
        scores = scores * 2
    return scores.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
