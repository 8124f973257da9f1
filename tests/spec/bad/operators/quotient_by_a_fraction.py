# error spec.rounding at line 8: an integer is made of a real here: of 1250 PyTorch makes 6 and fp64 5
import torch


def quotient_by_a_fraction(q, k, v):
    """No operator before it rounds: the fraction is another number in fp32."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    far = torch.floor_divide(i - j, 208.33333333333334) > 5
    return (q @ k.mT * 0.125).masked_fill(far, -torch.inf).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
