# error spec.softmax_axis at line 7: logits, and the product with v takes
import torch


def two_sinks(q, k, v, sinks):
    columns = sinks[None, :, None, :].expand(q.shape[0], -1, q.shape[2], -1)
    weights = torch.cat([q @ k.mT, columns], -1).softmax(-1)
    return weights[..., :-2].to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4, 2)
