"""QK-norm: each row of q and k is normalised by its root mean square and weighted, before the scores.

As in OLMo 2 and Chameleon: it bounds the scores, whatever the projections grow to.
"""

import torch
import torch.nn.functional as F


def qk_norm(q, k, v, q_weight, k_weight):
    """q [B, 32, S, 128], k and v [B, 8, S, 128], q_weight and k_weight [128]; any B and S."""
    q = F.rms_norm(q, (128,), q_weight, eps=1e-6)
    k = F.rms_norm(k, (128,), k_weight, eps=1e-6)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    q_weight = torch.randn(128, dtype=torch.bfloat16)
    k_weight = torch.randn(128, dtype=torch.bfloat16)
    return q, k, v, q_weight, k_weight
