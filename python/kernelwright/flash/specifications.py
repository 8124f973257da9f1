"""FlashAttention's options as specifications: functions in plain PyTorch, for `kernelwright.compile`.

One for each way that keys and queries lie: `attention_of` of a dense batch, `packed_attention_of` of sequences one behind the other,
`cached_attention_of` of queries at the end of a cache. They differ in the place that a query has among the keys, and in the keys
that there are for it; scores, the cap, slopes and the mean are the same text.
"""

import math

import torch


def attention_of(causal=False, left=-1, right=-1, softcap=0.0, slopes=False, log_sum=False):
    """Attention with FlashAttention's options as a specification: a function in plain PyTorch, for `compile`.

    causal: whether key j is dropped for a query before it.
    left, right: how many keys before and behind its place a query sees; -1: all.
    softcap: scores become softcap * tanh(score / softcap); 0: they stay.
    slopes: whether there are some.
    log_sum: whether the log-sum of each row is given, too.

    Gives attention(q, k, v, scale, slopes): q [B, M, H, D], k [B, N, G, D], v [B, N, G, V], scale a float, slopes [H] or [B, H] or
    None. It gives [B, M, H, V] in v's type, and the log-sums [B, H, M] in fp32."""

    def attention(q, k, v, scale, slopes_of_heads):
        i = torch.arange(q.shape[1], device=q.device)[:, None] + (k.shape[1] - q.shape[1])
        j = torch.arange(k.shape[1], device=q.device)
        scores = _scores(q, k, scale, softcap)
        if slopes:
            scores = scores - slopes_of_heads[..., None, None] * (i - j).abs()
        return _mean(_within(scores, i, j, causal, left, right), v, log_sum)

    return attention


def packed_attention_of(softcap=0.0, slopes=False, log_sum=False):
    """Attention of sequences one behind the other. Causal or not, a window or none: it is a range of keys for each query.

    softcap, slopes, log_sum: as attention_of's.

    Gives attention(q, k, v, scale, start, end, place, slopes): q [1, T, H, D], k [1, S, G, D], v [1, S, G, V]; query t sees the keys
    start[0, t] <= j < end[0, t] and stands at place[0, t] among them (int32 [1, T]; place None without slopes). It gives
    [1, T, H, V] in v's type, and the log-sums [1, H, T] in fp32."""

    def attention(q, k, v, scale, start, end, place, slopes_of_heads):
        j = torch.arange(k.shape[1], device=q.device)
        scores = _scores(q, k, scale, softcap)
        if slopes:
            scores = scores - slopes_of_heads[:, None, None] * (place[:, None, :, None] - j).abs()
        keep = (start[:, :, None] <= j) & (j < end[:, :, None])
        return _mean(scores.masked_fill(~keep[:, None], -math.inf), v, log_sum)

    return attention


def cached_attention_of(causal=False, left=-1, right=-1, softcap=0.0, slopes=False, log_sum=False):
    """Attention of the last queries of sequences to a cache that is filled to a length of its own for each.

    causal, left, right, softcap, slopes, log_sum: as attention_of's.

    Gives attention(q, k, v, scale, lengths, slopes): q [B, M, H, D], k [B, N, G, D], v [B, N, G, V], lengths int32 [B], no larger
    than N; the last query of an entry stands at the place lengths[b] - 1."""

    def attention(q, k, v, scale, lengths, slopes_of_heads):
        lengths = lengths[:, None, None, None]
        i = torch.arange(q.shape[1], device=q.device)[:, None] + (lengths - q.shape[1])
        j = torch.arange(k.shape[1], device=q.device)
        scores = _scores(q, k, scale, softcap)
        if slopes:
            scores = scores - slopes_of_heads[..., None, None] * (i - j).abs()
        scores = scores.masked_fill(j >= lengths, -math.inf)
        return _mean(_within(scores, i, j, causal, left, right), v, log_sum)

    return attention


def _scores(q, k, scale, softcap):
    q, k = q.transpose(1, 2), k.transpose(1, 2)
    scores = (q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT).float() * scale
    return softcap * torch.tanh(scores / softcap) if softcap else scores


def _within(scores, i, j, causal, left, right):
    if causal:
        scores = scores.masked_fill(j > i, -math.inf)
    elif right >= 0:
        scores = scores.masked_fill(j > i + right, -math.inf)
    return scores.masked_fill(j < i - left, -math.inf) if left >= 0 else scores


def _mean(scores, v, log_sum):
    v = v.transpose(1, 2)
    v = v.repeat_interleave(scores.shape[1] // v.shape[1], dim=1)
    output = (scores.softmax(-1).to(v.dtype) @ v).transpose(1, 2)
    return (output, scores.logsumexp(-1)) if log_sum else output
