# error spec.selection at line 7: aten.topk.default selects by value
import torch


def top_k(q, k, v):
    s = q @ k.mT
    least = s.topk(8, dim=-1).values[..., -1:]
    return s.masked_fill(s < least, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
