# error spec.conversion at line 7: bfloat16 holds whole numbers up to 256
import torch


def prefix_in_bf16(q, k, v, prefix):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    prefix = prefix.bfloat16()
    return (q @ k.mT * 0.125).masked_fill(~(j < prefix[:, None, None, None]), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.tensor([17, 40], dtype=torch.int32)
