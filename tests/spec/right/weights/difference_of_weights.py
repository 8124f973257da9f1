# difference_of_weights: bf16, 4 heads, D 64; any B, M, N
#   term 1 of 2, whose sum is the output
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
#   times   1
#   term 2 of 2, whose sum is the output
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
#   times   -part
#   then    o * gate[h]
import torch


def difference_of_weights(q1, k1, q2, k2, v, part, gate):
    i, j = torch.arange(q1.shape[2])[:, None], torch.arange(v.shape[2])
    first = (q1 @ k1.mT * 0.125).masked_fill(j > i, -torch.inf).softmax(-1)
    second = (q2 @ k2.mT * 0.125).masked_fill(j > i, -torch.inf).softmax(-1)
    return (first - part * second) @ v * gate[:, None, None]


def example_inputs():
    q1, k1, q2, k2, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(5))
    return q1, k1, q2, k2, v, 0.25, torch.rand(4)
