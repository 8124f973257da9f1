# window_band: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    i - 64 < j and j <= i
#   softmax over j
import torch


def window_band(q, k, v):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    band = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril().triu(-63)
    s = torch.where(band, q @ k.mT, -torch.inf)
    return (s * 0.125).softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k)
