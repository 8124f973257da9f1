# logarithm_of_gates: bf16, 4 heads, D 64; any B, S
#   score   s * 0.125 + log(gates[b, h, j])
#   keep    j <= i
#   softmax over j
import torch


def logarithm_of_gates(q, k, v, gates):
    i = torch.arange(q.shape[2])
    scores = (q @ k.mT).float() * 0.125 + torch.log(gates)[:, :, None, :]
    return scores.masked_fill(i > i[:, None], float("-inf")).softmax(-1).to(v.dtype) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.rand(2, 4, 96)
