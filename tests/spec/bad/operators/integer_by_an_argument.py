# error spec.rounding at line 8: an integer is made of a real here, and aten.mul in line 8 rounds it: it is made of data
import torch


def integer_by_an_argument(q, k, v, rate):
    """The rate is an argument of the kernel, in fp32, and times a distance it is rounded."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    far = ((i - j) * rate).int() > 2
    return (q @ k.mT * 0.125).masked_fill(far, -torch.inf).softmax(-1) @ v


def example_inputs():
    return *(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3)), 0.0112
