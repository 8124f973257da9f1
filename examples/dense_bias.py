"""A dense bias for every pair, as for pairs of residues (AlphaFold) or edges of a graph.

The bias has the scores' shape; where it is the same for all batch entries its first size is 1, and
it is read once for all of them.
"""

import torch
import torch.nn.functional as F


def dense_bias(q, k, v, bias):
    """q [B, 16, M, 128], k and v [B, 16, N, 128], bias [1, 16, M, N]; any B, M and N."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def example_inputs():
    q = torch.randn(2, 16, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 16, 192, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 16, 192, 128, dtype=torch.bfloat16)
    return q, k, v, torch.randn(1, 16, 256, 192, dtype=torch.bfloat16)
