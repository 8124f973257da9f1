# error spec.dtype at line 5: the operands must share one type
import torch


def keys_in_fp16(q, k, v, q2, k2):
    first = q @ k.mT
    return (first + q2 @ k2.to(q2.dtype).mT).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(2, 4, 96, 32, dtype=torch.bfloat16), torch.randn(2, 4, 96, 32, dtype=torch.float16)
