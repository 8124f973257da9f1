# sdpa_bool_mask: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
import torch
import torch.nn.functional as F


def sdpa_bool_mask(q, k, v):
    i = torch.arange(q.shape[2])
    j = torch.arange(k.shape[2])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=i[:, None] >= j, enable_gqa=True)


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k)
