# narrow_integers: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    j % 200 <= i % 200 and j <= i
#   softmax over j
import torch


def narrow_integers(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * 0.125).masked_fill(~(((i % 200).to(torch.uint8) >= (j % 200).to(torch.uint8)) & ((j <= i).to(torch.uint8) == 1)), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
