# error spec.conversion at line 6: aten.gt.Scalar compares bfloat16 with 0.1; PyTorch makes 0.10009765625 of it on a CPU
import torch


def compares_16_bits_with_a_number(q, k, v, gate):
    dropped = gate[:, None, None, :] > 0.1
    return (q @ k.mT * 0.125).masked_fill(dropped, -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.rand(2, 96).bfloat16()
