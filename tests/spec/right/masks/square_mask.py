# square_mask: bf16, 4 heads, D 64; any B, S
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
import torch
import torch.nn.functional as F


def square_mask(q, k, v):
    S = q.shape[2]
    m = torch.ones(S, S, dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, m)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
