"""Causal attention whose queries and keys have their positions apart from their contents, as in latent attention."""
import torch


def rope_apart(q_nope, q_pe, k_nope, k_pe, v):
    """q_nope [B, 8, M, 128], q_pe [B, 8, M, 64]; k_nope and v [B, 4, N, 128]; k_pe [B, 1, N, 64], one for all heads."""
    k_nope, v = (x.repeat_interleave(2, 1) for x in (k_nope, v))
    i = torch.arange(q_nope.shape[2])[:, None]
    j = torch.arange(k_nope.shape[2])
    score = (q_nope @ k_nope.mT + q_pe @ k_pe.mT) * 192**-0.5
    return score.masked_fill(j > i, -torch.inf).softmax(-1) @ v


def example_inputs():
    def normal(*shape):
        return torch.randn(shape, dtype=torch.bfloat16)
    return (normal(2, 8, 512, 128), normal(2, 8, 512, 64), normal(2, 4, 512, 128), normal(2, 1, 512, 64),
            normal(2, 4, 512, 128))
