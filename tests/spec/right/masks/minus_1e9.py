# minus_1e9: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
import torch


def minus_1e9(q, k, v):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    seen = torch.tril(torch.ones(q.shape[2], k.shape[2]))
    s = (q @ k.mT) * 0.125 + (1.0 - seen) * -1e9
    return s.softmax(-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k)
