"""Padded batches: what lies past the end of a shorter text is no key.

The mask says for each key whether it counts, as tokenizers give it (`attention_mask`).
"""

import torch
import torch.nn.functional as F


def key_padding(q, k, v, valid):
    """q [B, 32, M, 128], k and v [B, 8, N, 128], valid [B, N] (bool); any B, M and N."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=valid[:, None, None, :], enable_gqa=True)


def example_inputs():
    q = torch.randn(2, 32, 256, 128, dtype=torch.bfloat16)
    k = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    v = torch.randn(2, 8, 256, 128, dtype=torch.bfloat16)
    valid = torch.arange(256)[None, :] < torch.tensor([256, 170])[:, None]
    return q, k, v, valid
