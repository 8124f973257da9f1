# error spec.branch_on_size at line 7: q.shape[2] = 3001 would take the other
import torch


def size_branch(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    if q.shape[2] > 3000:
        i = i - 5
    return (q @ k.mT * 0.125).masked_fill(~(j <= i), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
