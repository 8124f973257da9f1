# error spec.dtype at line 5: fp8_float32_out returns torch.float32 of operands of float8_e4m3fn; its kernel can write torch.bfloat16 or torch.float16
import torch


def fp8_float32_out(q, k, v):
    q, k, v = (x.to(torch.float32) for x in (q, k, v))
    return (q @ k.mT).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64).to(torch.float8_e4m3fn) for _ in range(3))
