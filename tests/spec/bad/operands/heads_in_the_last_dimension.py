# error spec.heads at line 8: q is read at other places for other columns of the output
import torch


def heads_in_the_last_dimension(q, k, v):
    b, s, _ = q.shape
    q, k, v = (x.view(b, -1, 8, 64).transpose(1, 2) for x in (q, k, v))
    p = (q @ k.transpose(-1, -2) / 8).softmax(-1)
    return (p @ v).transpose(1, 2).reshape(b, s, 512)


def example_inputs():
    return tuple(torch.randn(2, 96, 512, dtype=torch.bfloat16) for _ in range(3))
