# block_mask: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    (i + N - j - M) % 4 == 0 or j // 64 <= (i + N - M) // 64
#   softmax over j
import torch
import torch.nn.functional as F


def block_mask(q, k, v):
    i = torch.arange(q.shape[2]).view(-1, 1) + (k.shape[2] - q.shape[2])
    j = torch.arange(k.shape[2]).view(1, -1)
    m = torch.logical_or(i // 64 >= j // 64, (i - j) % 4 == 0)
    return F.scaled_dot_product_attention(q, k, v, m)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
