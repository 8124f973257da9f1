# single_head: bf16, 1 head, D 64; any B, M, N
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
import torch
import torch.nn.functional as F


def single_head(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def example_inputs():
    q, k, v = (torch.randn(2, 1, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
