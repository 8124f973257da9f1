"""CuBridge's GEMM + ReduceSum: a product of two matrices, and the sum of each of its rows."""

import torch


def gemm_reduce_sum(a, b):
    """a: [M, K], b: [K, N]; the second output is [M], in f32 from the kernel."""
    c = a @ b
    return c, c.sum(dim=-1)


def example_inputs():
    return (torch.randn(512, 384, dtype=torch.bfloat16),
            torch.randn(384, 256, dtype=torch.bfloat16))
