# error spec.conversion at line 7: float16 holds whole numbers up to 2048
import torch


def positions_in_fp16(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    i, j = i.half(), j.half()
    return (q @ k.mT * 0.125).masked_fill(~(j <= i), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
