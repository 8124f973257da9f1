# relative_bias: bf16, 4 heads, D 64; any B, M, N
#   score   s + bias[h, min(max(j - i, -16), 16) + 16]
#   softmax over j
import torch


def relative_bias(q, k, v, bias):
    rel = torch.arange(k.shape[2])[None] - torch.arange(q.shape[2])[:, None]
    rel = rel.clamp(-16, 16) + 16
    s = q @ k.mT + bias[:, rel]
    return s.softmax(-1).to(q.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4, 33)
