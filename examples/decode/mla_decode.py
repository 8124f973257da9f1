"""Multi-head latent attention as it is decoded: keys and values are one compressed row of 576 for
each token, of which 512 are the values, and all heads share it. Queries have absorbed the projections.
"""
import torch


def mla_decode(q, kv):
    scores = q @ kv.mT * 0.1352337788608801  # 1 / sqrt(192), times what YaRN scales by
    return scores.softmax(-1) @ kv[..., :512]


def example_inputs():
    q = torch.randn(4, 16, 1, 576, dtype=torch.bfloat16)
    kv = torch.randn(4, 1, 1024, 576, dtype=torch.bfloat16)
    return q, kv
