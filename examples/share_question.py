"""One question, several answers: each answer sees the question and itself, but no other answer.

Sequences hold documents of a question (part 0) followed by its answers (parts 1, 2, ...), so that
the question's keys are computed once (FlashMask's "share question").
"""

import torch


def share_question(q, k, v, document, part):
    """q, k and v [B, 16, S, 128], document and part [B, S] (int32); any B and S."""
    i = torch.arange(q.shape[2], device=q.device)[:, None]
    j = torch.arange(k.shape[2], device=q.device)[None, :]
    same_document = document[:, None, :, None] == document[:, None, None, :]
    same_part = part[:, None, :, None] == part[:, None, None, :]
    question = (part == 0)[:, None, None, :]
    keep = (j <= i) & same_document & (same_part | question)

    scores = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
    return torch.softmax(torch.where(keep, scores, -torch.inf), dim=-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 16, 256, 128, dtype=torch.bfloat16) for _ in range(3))
    position = torch.arange(256, dtype=torch.int32)
    document = (position // 128).expand(2, 256).contiguous()
    part = (position % 128 // 32).expand(2, 256).contiguous()
    return q, k, v, document, part
