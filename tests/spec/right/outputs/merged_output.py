# merged_output: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.125
#   softmax over j
import torch
import torch.nn.functional as F


def merged_output(q, k, v):
    out = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    return out.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k = torch.randn(2, 2, 96, 64, dtype=torch.bfloat16)
    return q, k, torch.randn_like(k)
