# error spec.conversion at line 6: makes float16 of numbers of bfloat16, which has none above 65504
import torch


def bf16_as_fp16(q, k, v):
    q, k, v = q.to(torch.float16), k.to(torch.float16), v.to(torch.float16)
    return (q @ k.mT * 0.125).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
