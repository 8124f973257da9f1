# small_positions_in_bf16: bf16, 4 heads, D 64; any B, M, N
#   v row   v[b, h, j, d] * (j % 2)
#   score   s * 0.125 - min(max(i - j, -4), 4) * min(max(i - j, -4), 4) * 0.5
#   softmax over j
import torch


def small_positions_in_bf16(q, k, v):
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    s = (q @ k.mT).float() * 0.125 - (i - j).clamp(-4, 4).to(q.dtype) ** 2 * 0.5
    return s.softmax(-1).to(v.dtype) @ (v * (j % 2).to(v.dtype)[:, None])


def example_inputs():
    return tuple(torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
