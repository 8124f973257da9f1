# error spec.conversion at line 7: rounds numbers of float32 to bfloat16 and makes float32 of them again
import torch


def rounded_slopes(q, k, v, slopes):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    coarse = slopes.bfloat16()[:, None, None].float()
    scores = (q @ k.mT).float() * 0.125 - coarse * (i - j).abs()
    return scores.softmax(-1).to(v.dtype) @ v


def example_inputs():
    return *(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3)), torch.rand(4)
