# packed_mask: bf16, 4 heads, D 64; any B, S
#   score   s * 0.125 + (level[b, j] & 7) * 0.25
#   keep    i // 8 % 4 < 3 and j <= i and (words[b, j // 32] >> (j % 32)) & 1 == 1 and ((level[b, i] ^ level[b, j]) >> 3) & 1 == 0
#   softmax over j
import torch


def packed_mask(q, k, v, words, level):
    i, j = torch.arange(q.shape[2]), torch.arange(k.shape[2])
    bit = 1 << (j & 31)
    keep = (words[:, None, None, j >> 5] & bit) == bit
    keep = keep & (((level[:, None, :, None] ^ level[:, None, None, :]) & 8) == 0)
    keep &= ((i >> 3 & 3)[:, None] < 3) & ~(j > i[:, None])
    scores = q @ k.mT * 0.125 + (level & ~(-8))[:, None, None, :] * 0.25
    return scores.masked_fill(~keep, float("-inf")).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    words = torch.randint(-(2**31), 2**31, (2, 3), dtype=torch.int32)
    return q, k, v, words, torch.randint(0, 16, (2, 96))
