# error spec.elsewhere at line 10: __exit__ may keep to itself what is raised, by what its __exit__ gives; it is traced once, on a CPU
import torch


class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return True


def exit_that_keeps_what_is_raised(q, k, v):
    scale = 0.125
    with Quiet():
        torch.add(q, 0, out=torch.empty_like(q))  # raises where q requires a gradient
        scale = 0.25
    return (q @ k.mT * scale).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
