"""`flash_attn_func`: attention of dense tensors, any score, mask and normaliser in its place (`function=`)."""

from ..compiling.kinds import Kinds
from ..errors import ArgumentError
from .arguments import Options, slopes, tensors
from .specifications import attention_of

_kinds = Kinds()
_LENGTH, _BATCH = 256, 2  # of examples, so that another process finds the kernel in the cache


def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
                    alibi_slopes=None, deterministic=False, return_attn_probs=False, *, function=None, **others):
    """Attention of dense tensors, as flash_attn.flash_attn_func.

    q: [B, M, H, D], bf16 or f16, on a GPU, any strides.
    k, v: [B, N, G, D] and [B, N, G, V]; G divides H.
    dropout_p: 0.
    softmax_scale: of the scores; 1 / sqrt(D) by default.
    causal: whether a query sees no key behind its place.
    window_size: (left, right), keys that a query sees before and behind its place; -1: all.
    softcap: scores become softcap * tanh(score / softcap); 0: they stay.
    alibi_slopes: fp32 [H] or [B, H]: slope * distance is taken from each score; or None.
    deterministic: gradients have the same bits in every run.
    return_attn_probs: gives (output, log-sums [B, H, M] in fp32, None); there are no probabilities, which only dropout has a use for.
    function: another function of q, k and v, of the same shapes, in plain PyTorch; the options are its own then.
    others: options of other versions (qv, q_descale, num_splits, ...); None, or what they are by default.

    Returns [B, M, H, V] in v's type. Gradients are of q, k and v (and of slopes that require some). Raises ArgumentError for what a
    kernel has not, by its name, and what `compile` and a `Compiled` raise."""
    name = "flash_attn_func"
    tensors(name, ("batch", "length", "heads", "head dimension"), q=q, k=k, v=v)
    said = Options(name, q, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, others)
    slopes(name, alibi_slopes, (q.shape[2],), (q.shape[0], q.shape[2]))
    options = {"deterministic": True} if deterministic else {}
    shape = (q.dtype, k.dtype, v.dtype, q.device, q.shape[2], k.shape[2], q.shape[3], v.shape[3])
    if function is not None:
        if said.of_scores or said.of_keys or return_attn_probs:
            raise ArgumentError(name, "function", "is given beside options of FlashAttention's", "have them in it")
        return _kinds.call((function, *shape, deterministic), lambda: _made(function, (q, k, v), options), (q, k, v))
    given = (q, k, v, said.scale, alibi_slopes)
    kind = (said.causal, said.left, said.right, said.softcap, alibi_slopes is not None, bool(return_attn_probs))
    output = _kinds.call((*kind, said.slopes_have, *shape, deterministic), lambda: _made(attention_of(*kind), given, options), given)
    return (*output, None) if return_attn_probs else output


def _made(function, given, options):
    from .. import compile

    def like(x):
        if not hasattr(x, "new_zeros"):
            return x
        if x.dim() == 4:
            return x.new_zeros(_BATCH, _LENGTH, *x.shape[2:])
        return x.new_ones(_BATCH, x.shape[1]) if x.dim() == 2 else x.new_ones(x.shape)

    return compile(function, tuple(like(x) for x in given), strict=True, **options)
