# error spec.conversion at line 6: makes bfloat16 of numbers of float16, which keeps 8 bits of each
import torch


def gate_in_fp16(q, k, v, gate):
    return (q @ k.mT * 0.125).softmax(-1) @ v * gate.to(q.dtype)


def example_inputs():
    return *(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3)), torch.randn(2, 4, 96, 64, dtype=torch.float16)
