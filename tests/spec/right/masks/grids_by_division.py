# grids_by_division: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    (j - i) // 9 < 4 and j <= i // 7 and where(0 < abs(j - i), 1, 0) <= where(2 < abs(j - i), 1, 2) - where(6 < abs(j - i), 1, 0) or i // 49 == j // 49 and i // 8 <= j // 8 + 1
#   softmax over j
import torch


def grids_by_division(q, k, v):
    """Quotients of integers in fp32 pass an integer where they do over the rationals; those by powers of two are exact;
    log2 of a distance gives in fp32 what it gives in fp64 at every distance up to 2^20."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    same = torch.floor(i / 49) == torch.floor(j / 49)
    near = torch.floor(i / 8) <= torch.floor(j / 8) + 1
    early = (j <= (i.float() / 7).int()) & ((j - i).float().div(9).floor() < 4)
    few = torch.log2((i - j).abs() + 1.0).int().clamp(max=3) < 3
    return (q @ k.mT * 0.125).masked_fill(~(same & near | early & few), -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
