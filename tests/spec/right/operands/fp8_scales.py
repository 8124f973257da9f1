# fp8_scales: bf16 (q, k, v e4m3), 4 heads, D 64; any B, M, N
#   score   s * q_scale * k_scale
#   softmax over j
#   then    o * v_scale[0]
import torch


def fp8_scales(q, k, v, q_scale, k_scale, v_scale):
    s = (q.to(torch.float32) @ k.to(torch.float32).mT) * (q_scale * k_scale)
    return (s.softmax(-1) @ v.to(torch.float32) * v_scale).to(torch.bfloat16)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64).to(torch.float8_e4m3fn) for _ in range(3))
    return q, k, v, torch.tensor(0.5), torch.tensor(1.25), torch.tensor([0.75])
