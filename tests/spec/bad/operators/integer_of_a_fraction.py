# error spec.rounding at line 8: an integer is made of a real here, and aten.mul in line 8 rounds it: of 625 PyTorch makes 3 and fp64 2
import torch


def integer_of_a_fraction(q, k, v):
    """No golden case is that far: 625 * 0.0048 is 3.0000002 in fp32, 2.9999999999999996 in fp64."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    far = ((i - j) * 0.0048).int() > 2
    return (q @ k.mT * 0.125).masked_fill(far, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
