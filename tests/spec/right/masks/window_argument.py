# window_argument: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    i - window < j and j <= i
#   softmax over j
import torch
import torch.nn.functional as F


def window_argument(q, k, v, window):
    i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])[None]
    return F.scaled_dot_product_attention(q, k, v, (j <= i) & (i - j < window))


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, 32
