# error spec.number at line 6: the integer 5000000000, written here or made of others, is beyond 2147483647, the largest that 32 bits hold
import torch


def integer_beyond_32_bits(q, k, v, place):
    keep = place[:, None, None, :] < 5_000_000_000
    scores = (q @ k.mT * 0.125).masked_fill(~keep, -torch.inf)
    return scores.softmax(-1) @ v


def example_inputs():
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    return q, torch.randn_like(q), torch.randn_like(q), torch.randint(0, 100, (2, 96))
