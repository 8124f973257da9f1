# unit_rows: bf16, 1 head, D 64; any B, M, N
#   q row   q[b, i, d] / max(sqrt(sum0), 1e-12)
#     sum0  over d of q[b, i, d] * q[b, i, d]
#   k row   k[b, j, d] / max(sqrt(sum0), 0.001)
#     sum0  over d of k[b, j, d] * k[b, j, d]
#   v row   v[b, j, d] * rsqrt(sum0 * 0.015625 + 1.19209e-07)
#     sum0  over d of v[b, j, d] * v[b, j, d]
#   score   s * scale
#   softmax over j
import torch
import torch.nn.functional as F


def unit_rows(q, k, v, scale):
    q, k = F.normalize(q, dim=-1), k / k.norm(dim=-1, keepdim=True).clamp(min=1e-3)
    return (q @ k.transpose(1, 2) * scale).softmax(-1) @ F.rms_norm(v, (64,))


def example_inputs():
    q, k, v = (torch.randn(6, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, 10.0
