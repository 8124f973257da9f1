# causal_buckets: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125 + table[h, where(-8 < min(j - i, 0), min(j - i, 0) * -1, where(min(j - i, 0) < -10, 1, 0) + where(min(j - i, 0) < -14, 1, 0) + where(min(j - i, 0) < -18, 1, 0) + 8)]
#   keep    j <= i
#   softmax over j
import math

import torch


def _relative_position_bucket(relative_position, num_buckets=12, max_distance=25):
    relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
    max_exact = 8
    is_small = relative_position < max_exact
    relative_position_if_large = max_exact + (
        torch.log(relative_position.float() / max_exact)
        / math.log(max_distance / max_exact)
        * (num_buckets - max_exact)
    ).to(torch.long)
    relative_position_if_large = torch.min(
        relative_position_if_large, torch.full_like(relative_position_if_large, num_buckets - 1)
    )
    return torch.where(is_small, relative_position, relative_position_if_large)


def causal_buckets(q, k, v, table):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    scores = q @ k.mT * 0.125 + table[:, _relative_position_bucket(j - i)]
    return scores.masked_fill(j > i, float("-inf")).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4, 12)
