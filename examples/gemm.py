"""A product of two matrices: no attention."""

import torch


def gemm(a, b):
    return a @ b


def example_inputs():
    def matrix(rows, columns):
        return torch.randn(rows, columns, dtype=torch.bfloat16)

    return matrix(512, 384), matrix(384, 256)
