# two_products: bf16, 4 heads, D 64; any B, M, N
#   product s2 = q2[b, h, i, d] . k2[b, h, j, d], D 32
#   score   s * 0.125 + s2 * 0.25
#   keep    j <= i
#   softmax over j
import torch


def two_products(q, k, v, q2, k2):
    s = q @ k.mT * 0.125 + q2 @ k2.mT * 0.25
    seen = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
    return s.masked_fill(~seen, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    q2, k2 = (torch.randn(2, 4, 96, 32, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, q2, k2
