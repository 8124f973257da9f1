# log_sums_of_rows_first: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   score   s * 0.125
#   softmax over j
#   also    logsumexp of the scores, [b, i, h]
import torch


def log_sums_of_rows_first(q, k, v):
    """[B, M, H, D] and [B, M, H]."""
    q, k, v = (x.transpose(1, 2) for x in (q, k.repeat_interleave(2, dim=2), v.repeat_interleave(2, dim=2)))
    s = q @ k.mT * 0.125
    return (s.softmax(-1) @ v).transpose(1, 2), s.logsumexp(-1).transpose(1, 2)


def example_inputs():
    return tuple(torch.randn(2, 96, h, 64, dtype=torch.bfloat16) for h in (4, 2, 2))
