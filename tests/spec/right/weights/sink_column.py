# sink_column: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   keep    j <= i
#   softmax over j
#   sink    sinks[h]
#   also    logsumexp of the scores
import torch


def sink_column(q, k, v, sinks):
    s = q @ k.mT * 0.125
    future = torch.arange(k.shape[2]) > torch.arange(q.shape[2])[:, None]
    s = s.masked_fill(future, -torch.inf)
    column = sinks[:, None, None].expand(q.shape[0], -1, q.shape[2], 1)
    s = torch.cat([column, s], -1)
    return s.softmax(-1)[..., 1:].to(v.dtype) @ v, s.logsumexp(-1)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4)
