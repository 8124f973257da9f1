# error spec.nan at line 6: aten.nan_to_num.default puts 0 and the largest numbers
import torch


def product_without_infinities(a, b):
    return (a @ b).nan_to_num(0.0)


def example_inputs():
    return torch.randn(512, 384, dtype=torch.bfloat16), torch.randn(384, 256, dtype=torch.bfloat16)
