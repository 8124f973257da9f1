# one_key_for_all_heads: bf16, 4 query / 2 key heads, D 64; any B, M, N
#   product s2 = r[b, i, h, d] . position[b, j, d], D 32
#   score   tanh((s2 + s) * 0.1)
#   softmax over j
import torch


def one_key_for_all_heads(r, position, q, k, v):
    """The product whose keys all heads share stands first."""
    both = torch.einsum("bihd,bjd->bhij", r, position) + q @ k.repeat_interleave(2, 1).mT
    return torch.tanh(both * 0.1).softmax(-1) @ v.repeat_interleave(2, 1)


def example_inputs():
    r, position = torch.randn(2, 96, 4, 32, dtype=torch.bfloat16), torch.randn(2, 96, 32, dtype=torch.bfloat16)
    q = torch.randn(2, 4, 96, 64, dtype=torch.bfloat16)
    k, v = (torch.randn(2, 2, 96, 64, dtype=torch.bfloat16) for _ in range(2))
    return r, position, q, k, v
