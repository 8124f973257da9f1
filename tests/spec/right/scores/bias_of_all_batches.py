# bias_of_all_batches: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125 + bias[0, h, i, j]
#   softmax over j
import torch
import torch.nn.functional as F


def bias_of_all_batches(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k, v = (torch.randn(2, 4, 80, 64, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, torch.randn(1, 4, 96, 80, dtype=torch.bfloat16)
