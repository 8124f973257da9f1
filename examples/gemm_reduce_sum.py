"""CuBridge's GEMM + ReduceSum: a product of two matrices, and the sum of each of its rows."""

import torch


def gemm_reduce_sum(a, b):
    c = a @ b
    return c, c.sum(dim=-1)


def example_inputs():
    def matrix(rows, columns):
        return torch.randn(rows, columns, dtype=torch.bfloat16)

    return matrix(512, 384), matrix(384, 256)
