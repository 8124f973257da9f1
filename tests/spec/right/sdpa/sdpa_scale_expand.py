# sdpa_scale_expand: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.3
#   softmax over j
import torch
import torch.nn.functional as F


def sdpa_scale_expand(q, k, v):
    B, G, N, D = k.shape
    k = k[:, :, None].expand(B, G, 2, N, D).reshape(B, 2 * G, N, D)
    v = v[:, :, None].expand(B, G, 2, N, D).flatten(1, 2)
    return F.scaled_dot_product_attention(q, k, v, scale=0.3)


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k)
