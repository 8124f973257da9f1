# baked_scale: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.2
#   softmax over j
#   with    scale = 0.2 (an argument that PyTorch needs the value of)
import torch
import torch.nn.functional as F


def baked_scale(q, k, v, scale):
    return F.scaled_dot_product_attention(q, k, v, scale=scale, enable_gqa=True)


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k), 0.2
