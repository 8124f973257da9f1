# error spec.conversion at line 7: keeps 8 bits of an integer that may be
import torch


def ids_in_eight_bits(q, k, v, ids):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    ids = ids.to(torch.uint8)
    return (q @ k.mT * 0.125).masked_fill(~(ids[:, None, :, None] == ids[:, None, None, :]), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.arange(192, dtype=torch.int32).reshape(2, 96) // 20
