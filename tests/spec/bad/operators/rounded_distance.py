# error spec.rounding at line 9: an integer is made of a real here
import torch


def rounded_distance(q, k, v, table):
    """(n / 49) * 49 is not n for every n, and no sum of steps either: there is one at each n."""
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    far = (j - i).abs().float()
    bias = table[:, (far / 49 * 49).long() % 5]
    return (q @ k.mT * 0.125 + bias).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4, 5)
