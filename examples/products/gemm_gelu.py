"""A layer of a transformer's MLP: a product, a bias of each column, GELU by its tanh."""

import math

import torch


def gemm_gelu(x, weight, bias):
    """x: [B, M, K], weight: [K, N], the same for all batch entries, bias: [N]."""
    y = x @ weight + bias
    return 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y * y * y)))


def example_inputs():
    x = torch.randn(2, 512, 384, dtype=torch.bfloat16)
    weight = torch.randn(384, 512, dtype=torch.bfloat16) * 384**-0.5
    return x, weight, torch.randn(512, dtype=torch.bfloat16)
