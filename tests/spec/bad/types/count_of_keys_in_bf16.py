# error spec.rounding at line 7: aten.sum makes bfloat16
import torch


def count_of_keys_in_bf16(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    seen = (j <= i).to(v.dtype).sum(-1, keepdim=True)
    return (q @ k.mT * 0.125).softmax(-1) @ v * (seen - k.shape[2])


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
