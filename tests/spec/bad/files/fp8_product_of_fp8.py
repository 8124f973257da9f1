# error spec.run at line 6: fp8_product_of_fp8 raises
import torch


def fp8_product_of_fp8(q, k, v):
    return ((q @ k.mT).to(torch.float32).softmax(-1) @ v.to(torch.float32)).to(torch.bfloat16)


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64).to(torch.float8_e4m3fn) for _ in range(3))
