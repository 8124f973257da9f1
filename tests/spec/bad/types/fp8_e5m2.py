# error spec.dtype at line 5: one type, bfloat16 or float16, beside those of float8_e4m3fn: q torch.float8_e5m2
import torch


def fp8_e5m2(q, k, v):
    q, k, v = (x.to(torch.bfloat16) for x in (q, k, v))
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64).to(torch.float8_e5m2) for _ in range(3))
