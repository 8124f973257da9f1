# bias_in_fp32: bf16, 4 heads, D 64; any B, S
#   score   s * 0.125 + (decay[b, h, i] - decay[b, h, j])
#   keep    j <= i
#   softmax over j
import torch


def bias_in_fp32(q, k, v, decay):
    s = q @ k.mT * q.shape[-1] ** -0.5 + (decay[..., :, None] - decay[..., None, :])
    past = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool).tril()
    return s.masked_fill(~past, -torch.inf).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(2, 4, 96)
