# finite_rows: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    j < length[b]
#   softmax over j
#   a row that keeps no key is a uniform softmax
import torch


def finite_rows(q, k, v, length):
    s = q @ k.mT * 0.125
    s = s.masked_fill(torch.arange(k.shape[2]) >= length[:, None, None, None], torch.finfo(s.dtype).min)
    return s.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.tensor([50, 96])
