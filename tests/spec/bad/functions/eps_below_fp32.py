# error spec.number at line 7: the number 1e-40, written here or made of others, is none of fp32's normal numbers
import torch


def eps_below_fp32(x, weight):
    rows = x.float()
    mean = rows.square().mean(-1, keepdim=True) + 1e-40
    return (rows * torch.rsqrt(mean) * weight.float()).to(x.dtype)


def example_inputs():
    return torch.randn(2, 33, 4096, dtype=torch.bfloat16), torch.randn(4096, dtype=torch.bfloat16)
