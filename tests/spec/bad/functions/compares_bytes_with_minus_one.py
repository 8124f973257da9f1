# error spec.wraps at line 6: aten.ne compares uint8 with -1, of which PyTorch keeps 8 bits
import torch


def compares_bytes_with_minus_one(q, k, v, ids):
    kept = ids[:, None, None, :] != -1
    return (q @ k.mT * 0.125).masked_fill(~kept, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.zeros(2, 96, dtype=torch.uint8)
