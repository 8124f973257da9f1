# error spec.operand at line 6: the output is [b, i, d, h], and what a kernel writes ends with the head dimension
import torch


def output_ends_with_heads(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v).permute(0, 2, 3, 1)


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
