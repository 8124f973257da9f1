# gated_output: bf16, 4 heads, D 64; any B, M, N
#   score   s * 0.125
#   softmax over j
#   then    o * sigmoid(gate[b, h, i, d])
import torch
import torch.nn.functional as F


def gated_output(q, k, v, gate):
    return F.scaled_dot_product_attention(q, k, v) * gate.sigmoid()


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 64, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v, torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
