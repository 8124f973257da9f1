"""How much attention each key was given, causal: what H2O and SnapKV keep keys by. No attention itself, a product of matrices:
an attention kernel that returns its log-sum-exp has done the softmax."""

import torch


def key_mass(k, q, lse):
    """k: [B, H, N, 128], q: [B, H, N, 128], lse: [B, H, N], in f32, of q's rows; the sums of the weights' columns, [B, H, N]."""
    key = torch.arange(k.shape[2])[:, None]
    query = torch.arange(q.shape[2])
    weights = (k @ q.mT * 128**-0.5 - lse[:, :, None]).exp()
    return weights.masked_fill(query < key, 0).sum(dim=-1)


def example_inputs():
    k, q = (torch.randn(2, 4, 320, 128, dtype=torch.bfloat16) for _ in range(2))
    scores = (q @ k.mT * 128**-0.5).float()
    return k, q, scores.masked_fill(torch.ones(320, 320).triu(1) > 0, -torch.inf).logsumexp(-1)
