# error spec.run at line 7: keys_of_another_length raises
import torch


def keys_of_another_length(q, k, v, q2, k2):
    first = q @ k.mT
    return (first + q2 @ k2.mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(2, 4, 96, 32, dtype=torch.bfloat16), torch.randn(2, 4, 80, 32, dtype=torch.bfloat16)
