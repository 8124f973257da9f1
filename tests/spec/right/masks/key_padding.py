# key_padding: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    mask[b, j] != 0
#   softmax over j
import torch
import torch.nn.functional as F


def key_padding(q, k, v, mask):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None, :].bool())


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.ones(2, 96, dtype=torch.int64)
