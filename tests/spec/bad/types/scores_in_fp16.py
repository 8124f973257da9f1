# error spec.conversion at line 6: makes float16 of numbers of bfloat16, which has none above 65504
import torch


def scores_in_fp16(q, k, v):
    scores = (q @ k.mT).float().half() * 0.125
    return scores.softmax(-1).to(v.dtype) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
