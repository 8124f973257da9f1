# error spec.elsewhere at line 8: forward asks for needs_input_grad; it is traced once, on a CPU
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q):
        return q * (2 if ctx.needs_input_grad[0] else 3)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def asks_which_inputs_learn(q, k, v):
    return (Scaled.apply(q) @ k.mT * 0.125).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
