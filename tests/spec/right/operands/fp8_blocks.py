# fp8_blocks: bf16 (q, k, v e4m3), 4 heads, D 64; any B, M, N
#   score   s * q_scale[b, h, i // 128] * k_scale[b, h, j // 128]
#   softmax over j
import torch


def fp8_blocks(q, k, v, q_scale, k_scale):
    i, j = (torch.arange(x.shape[2]) // 128 for x in (q, k))
    q, k = q.to(torch.float32), k.to(torch.float32)
    s = (q * q_scale[:, :, i, None]) @ (k * k_scale[:, :, j, None]).mT
    return (s.softmax(-1) @ v.to(torch.float32)).to(torch.bfloat16)


def example_inputs():
    q, k, v = (torch.randn(2, 4, 256, 64).to(torch.float8_e4m3fn) for _ in range(3))
    return q, k, v, torch.rand(2, 4, 2) + 0.5, torch.rand(2, 4, 2) + 0.5
