# error spec.operand at line 6: the rows of k depend on the query head too
import torch


def keys_by_query_head(q, k, v, weights):
    s = q @ (k.repeat_interleave(2, 1) * weights[:, None]).mT
    return s.softmax(-1) @ v.repeat_interleave(2, 1)


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k, v = (torch.randn(2, 2, 96, 64, dtype=torch.bfloat16) for _ in range(2))
    return q, k, v, torch.randn(4, 64, dtype=torch.bfloat16)
