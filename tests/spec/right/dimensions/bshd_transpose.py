# bshd_transpose: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
import torch
import torch.nn.functional as F


def bshd_transpose(q, k, v):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return out.transpose(1, 2)


def example_inputs():
    q = torch.randn(2, 96, 4, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 96, 2, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k)
