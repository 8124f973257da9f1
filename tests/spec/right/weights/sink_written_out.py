# sink_written_out: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   softmax over j
#   sink    sinks[h]
import torch


def sink_written_out(q, k, v, sinks):
    s, sinks = q @ k.mT * 0.125, sinks.view(1, -1, 1, 1)
    m = torch.maximum(s.amax(-1, keepdim=True), sinks)
    p = torch.exp(s - m)
    total = p.sum(-1, keepdim=True) + torch.exp(sinks - m)
    return (p / total).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(4)
