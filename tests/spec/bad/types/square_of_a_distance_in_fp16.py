# error spec.rounding at line 8: aten.pow makes float16 of what is computed of positions and may be 0 to 90000
import torch


def square_of_a_distance_in_fp16(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    near = (i - j).clamp(-300, 300).to(q.dtype)
    return (q @ k.mT * 0.125 - near ** 2 * 1e-6).softmax(-1) @ v


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.float16) for _ in range(3))
