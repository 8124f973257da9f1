# error spec.heads at line 7: k2 is read at head h // 4 and k at head h // 2
import torch


def other_groups_of_heads(q, k, v, q2, k2):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    second = q2 @ k2.repeat_interleave(4, 1).mT
    return (q @ k.mT + second).softmax(-1) @ v


def example_inputs():
    q, q2 = (torch.randn(2, 8, 96, 64, dtype=torch.bfloat16) for _ in range(2))
    k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, q2, torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
