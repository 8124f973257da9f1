# error spec.elsewhere at line 13: calls scaled, which TorchScript has compiled
import torch


@torch.jit.script
def scaled(scores: torch.Tensor) -> torch.Tensor:
    if scores.requires_grad:
        scores = scores * 2.0
    return scores * 0.125


def asks_compiled_code(q, k, v):
    return scaled(q @ k.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
