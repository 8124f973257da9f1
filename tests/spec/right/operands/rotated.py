# rotated: bf16, 4 heads, D 64; any B, S
#   q row   where(d < 16, q[b, h, i, d] * cos[i, d] + where(d < 8, -q[b, h, i, d + 8], q[b, h, i, d - 8]) * sin[i, d], q[b, h, i, d])
#   k row   where(d < 16, k[b, h, j, d] * cos[j, d] + where(d < 8, -k[b, h, j, d + 8], k[b, h, j, d - 8]) * sin[j, d], k[b, h, j, d])
#   score   s
#   softmax over j
import torch


def rotated(q, k, v, cos, sin):
    def turned(x):
        first, second = x[..., :16].chunk(2, -1)
        half = torch.cat([-second, first], -1)
        return torch.cat([x[..., :16] * cos + half * sin, x[..., 16:]], -1)

    s = turned(q) @ turned(k).mT
    return s.softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, *(torch.randn(96, 16, dtype=torch.bfloat16) for _ in range(2))
