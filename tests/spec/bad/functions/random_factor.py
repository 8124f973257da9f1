# error spec.not_a_function at line 8: gave two different results
import numpy
import torch

GENERATOR = numpy.random.default_rng(7)


def random_factor(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    return (q @ k.mT * GENERATOR.normal()).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
