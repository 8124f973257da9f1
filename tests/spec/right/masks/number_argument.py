# number_argument: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * scale
#   keep    j < length[b]
#   softmax over j
import torch


def number_argument(q, k, v, length, scale):
    k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
    s = (q @ k.mT) * scale
    padding = torch.arange(k.shape[2]) >= length[:, None]
    return s.masked_fill(padding[:, None, None], -torch.inf).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k), torch.tensor([50, 96]), 0.125
