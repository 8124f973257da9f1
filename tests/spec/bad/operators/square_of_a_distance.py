# error spec.rounding at line 8: aten.lt compares reals that are computed of positions, and aten.square in line 7 rounds one
import torch


def square_of_a_distance(q, k, v):
    """Squares above 2^24 are rounded in fp32; a kernel's integers are not."""
    far = (torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])).float().square()
    mask = far < 4097 * 4097
    return (q @ k.mT * 0.125).masked_fill(~mask, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
