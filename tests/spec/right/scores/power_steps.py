# attention: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125 + 2 ** ((i - j) % 5) * 0.01
#   softmax over j
import torch


def attention(q, k, v):
    """The power 2 among others: two to the second is two squared too."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    steps = (2.0 ** ((i - j) % 5)).to(q.dtype)
    return (q @ k.mT * 0.125 + 0.01 * steps).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
