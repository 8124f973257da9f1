"""Hugging Face transformers on kernels of ours: one name for attention and its mask.

    import kernelwright.huggingface
    kernelwright.huggingface.register()          # "kernelwright" in both interfaces
    model = AutoModelForCausalLM.from_pretrained(..., dtype=torch.bfloat16,
                                                 attn_implementation="kernelwright")

A model asks its AttentionMaskInterface once for each kind of layer and forward pass, and its
AttentionInterface once for each layer. The first gets a predicate (a Python closure) and a mask of
padding, and answers with a `Mask`: what the predicate says in numbers, so that no mask is built. The
second writes the layer down as a function in plain PyTorch (`attention_of`), which is compiled once
for each kind of layer (window, cap, sink, padding, heads) and called from then on; the scale is an
argument of the kernel. Queries are the last places of the sequence, as after a cache's keys; a static
cache's room behind them is cut off, so a chunk of a prompt at any place takes the same kernel.

Under Trainer the same two are called, with four things of its own. Under autocast rotated queries and
keys arrive in fp32 and values in bf16: all three are cast, as autocast would for a product. A model may be
under torch.compile: masks, which are read out of closures, and a kind's first call, which makes kernels,
are left out of the trace; later calls are traced as one operator. Checkpointed layers run first without gradients, or twice with them:
a kind with gradients is another one than without, since other kernels run.

What is hard is to be sure of the predicate. transformers builds it from closures; those that are known
here (causal, full, a sliding window, chunks of it, packed sequences) are recognised by what they are,
function by function, and anything else is refused with its name: a predicate that is taken for another
would give wrong tokens silently.
"""

import dataclasses
import functools

import torch

from .compiling.kinds import Kinds
from .errors import ArgumentError, SpecError


@dataclasses.dataclass
class Mask:
    """What a layer keeps: key j of query i (places in the sequence, in tokens) where all that is said
    holds."""

    causal: bool = False                 # j <= i
    window: int | None = None            # j > i - window
    ahead: int | None = None             # j < i + ahead
    keys: int | None = None              # so many of the keys count: the last one is the last query's
    valid: torch.Tensor | None = None    # [B, N] bool: keys that are no padding
    document: torch.Tensor | None = None  # [B, N] int32: both of one document; M equals N then
    ndim = 4                              # as transformers asks whether a mask is one of padding

    def contiguous(self):
        """Itself. `generate` makes masks before the forward pass where a cache is static, and asks for this."""
        return self


def register(name="kernelwright", **compile_options):
    """Enters attention and mask into transformers' two interfaces, under one name.

    name: what a model is loaded with, as its attn_implementation.
    compile_options: go to kernelwright.compile (target, check, backward, deterministic).

    Layers are compiled when a forward pass first asks for them, once for each kind. Raises ImportError
    where transformers is not installed."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(name, functools.partial(attention_forward, _options=compile_options))
    AttentionMaskInterface.register(name, attention_mask)


# ---- the mask, once a forward pass


@torch.compiler.disable(reason="a mask is read out of closures, which a traced function does not have")
def attention_mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None,
                   attention_mask=None, **_):
    """The Mask of a forward pass; of transformers' AttentionMaskInterface, with its argument names.

    batch_size: B, which nothing depends on.
    q_length, kv_length: how many queries and keys, in tokens.
    q_offset, kv_offset: the first query's and the first key's place in the sequence, in tokens.
    mask_function: transformers' predicate of (batch, head, query, key), or None.
    attention_mask: [B, tokens seen so far], True where a token counts, the Mask that `generate` made before, or None.

    Raises SpecError, with its name, for a predicate that is not one of those that are known, or for a window without an end ahead whose
    queries do not end where the keys do, and ArgumentError for a Mask of another kind of layer, or one of the caller's own."""
    mask = Mask()
    if mask_function is not None:
        _read(mask_function, mask)
    seen = int(q_offset) - int(kv_offset) + q_length
    if mask.causal:  # else nothing is counted from the end
        mask.keys = kv_length = seen
    elif mask.window is not None and seen != kv_length:
        raise SpecError(f"the model's mask is a window of {mask.window} that is not causal, and its last query is at place {seen} of {kv_length} "
                        "keys, where a window is counted from the last", hint='load this model with attn_implementation="sdpa"')
    if isinstance(attention_mask, Mask):
        said = [(m.causal, m.window, m.keys, m.document is None) for m in (attention_mask, mask)]
        if said[0] != said[1]:
            raise ArgumentError("attention", "attention_mask", f"is the Mask of another layer: {said[0]}", f"say {said[1]} of causal, "
                                "window, keys and no documents")
        return attention_mask
    if attention_mask is not None:
        if attention_mask.dim() != 2:
            raise ArgumentError("attention", "attention_mask", f"has {attention_mask.dim()} dimensions: it is a mask of the caller's own",
                                "be the tokenizer's mask [B, N], or None")
        valid = attention_mask[:, kv_offset:kv_offset + kv_length].to(torch.bool)
        if missing := kv_length - valid.shape[1]:  # a static cache has room for more keys
            valid = torch.nn.functional.pad(valid, (0, missing))
        if not valid.all():
            mask.valid = valid
    return mask


def _read(function, mask):
    """Adds to `mask` what transformers' predicate says, or raises."""
    name = function.__qualname__
    captured = dict(zip(function.__code__.co_freevars,
                        (cell.cell_contents for cell in function.__closure__ or ())))
    if not _is_of_transformers(function):
        _refuse(function)
    if name == "and_masks.<locals>.and_mask":
        for part in captured["mask_functions"]:
            _read(part, mask)
    elif name == "causal_mask_function":
        mask.causal = True
    elif name == "sliding_window_overlay.<locals>.inner_mask":
        windows = [w for w in (mask.window, captured["sliding_window"]) if w is not None]
        mask.window = min(windows)
    elif name == "packed_sequence_mask_function.<locals>.inner_mask":
        mask.document = captured["packed_sequence_mask"].to(torch.int32)
    elif name == "remap_positions_for_packed_sequence.<locals>.inner_mask":
        # Places are counted from a document's start. Distances within a document stay as they are,
        # and pairs across documents are dropped by the mask that always comes with this one.
        _read(captured["mask_function"], mask)
    elif name != "bidirectional_mask_function":
        _refuse(function)


def _is_of_transformers(function):
    """Whether a predicate is the code of transformers' own of its name, or of what one of its functions makes."""
    from transformers import masking_utils
    path = function.__qualname__.split(".<locals>.")
    own = getattr(getattr(masking_utils, path[0], None), "__code__", None)
    for name in path[1:]:
        own = next((part for part in own.co_consts if getattr(part, "co_name", None) == name), None) if own else None
    return own is not None and function.__code__ == own


def _refuse(function):
    raise SpecError(f"the model's mask {function.__module__}.{function.__qualname__} is not one of causal, "
                    "full, sliding window, padding and packed sequences",
                    hint='load this model with attn_implementation="sdpa", or write its attention as a '
                    "function and compile that")


# ---- the attention, once a layer


def attention_of(causal, window, softcap, ahead=None):
    """A layer's attention as a specification: a function in plain PyTorch, for `compile`.

    causal: whether key j is dropped for a query before it.
    window: keys that a query sees, in tokens, counted back from its own place; or None.
    softcap: scores become softcap * tanh(score / softcap); or None.
    ahead: keys that a query sees counted forward, its own included, in tokens; or None.

    Gives attention(q, k, v, scale, valid, document, sinks, bias): q [B, H, M, D], k and v [B, G, N, D];
    scale a float; valid [B, N] bool or None; document [B, N] int32 or None, of M = N; sinks [H] or None; bias
    [B, H, M, N] or None, added to the scaled scores. It gives [B, M, H, D]. The last query is at the last
    key's place."""

    def attention(q, k, v, scale, valid, document, sinks, bias):
        groups = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))
        scores = q @ k.mT * scale
        if softcap is not None:
            scores = softcap * torch.tanh(scores / softcap)
        if bias is not None:
            scores = scores + bias
        i = torch.arange(q.shape[2], device=q.device)[:, None] + (k.shape[2] - q.shape[2])
        j = torch.arange(k.shape[2], device=q.device)
        if causal:
            scores = scores.masked_fill(j > i, -torch.inf)
        if window is not None:
            scores = scores.masked_fill(j <= i - window, -torch.inf)
        if ahead is not None:
            scores = scores.masked_fill(j >= i + ahead, -torch.inf)
        if valid is not None:
            scores = scores.masked_fill(~valid[:, None, None, :], -torch.inf)
        if document is not None:
            same = document[:, None, :, None] == document[:, None, None, :]
            scores = scores.masked_fill(~same, -torch.inf)
        if sinks is None:
            weights = scores.softmax(-1, dtype=torch.float32)
        else:
            column = sinks.reshape(1, -1, 1, 1).expand(q.shape[0], -1, q.shape[2], -1)
            weights = torch.cat([scores, column], dim=-1).softmax(-1, dtype=torch.float32)[..., :-1]
        return (weights.to(v.dtype) @ v).transpose(1, 2)

    return attention


_kinds = Kinds()


# What models pass on besides, and why a layer's answer cannot depend on it here. Whatever is not among
# these, and is not None or False, is refused: a keyword that is swallowed is a wrong answer that nobody sees.
_WITHOUT_EFFECT = {
    "output_hidden_states": "of the model, not of a layer",
    "output_router_logits": "of the model's experts",
    "return_dict": "of the model, not of a layer",
    "use_cache": "keys and values come with the cache's",
    "cache_position": "the Mask was made of it",
    "position_ids": "queries and keys are rotated before, and the Mask was made of them",
    "past_key_values": "keys and values come with the cache's",
    "num_items_in_batch": "of the loss",
    "labels": "of the loss",
    "logits_to_keep": "of the model's head",
}


def _no_other(keywords):
    for name, value in keywords.items():
        if value is None or value is False or name in _WITHOUT_EFFECT:
            continue
        raise ArgumentError("attention", name, f"is given, a {type(value).__name__}",
                            "be None: what it means to this model's attention is not known here",
                            hint='load this model with attn_implementation="sdpa"')


def _mask_of(module, attention_mask, is_causal, sliding_window):
    """The Mask of a layer. What a model says of it beside a Mask, the Mask says already."""
    if attention_mask is not None:
        return attention_mask
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    if sliding_window is not None and sliding_window < 1:
        raise ArgumentError("attention", "sliding_window", f"is {sliding_window}", "be 1 or more, or None")
    # As transformers gives it to FlashAttention, (W - 1, W - 1): an encoder's window reaches as far ahead as back.
    return Mask(causal=causal, window=sliding_window, ahead=None if causal else sliding_window)


def attention_forward(module, query, key, value, attention_mask, scaling=None, dropout=0.0,
                      softcap=None, s_aux=None, sinks=None, position_bias=None, is_causal=None,
                      sliding_window=None, deterministic=None, output_attentions=None, _options=None, **others):
    """A layer's attention, of transformers' AttentionInterface with its argument names.

    module: the layer; its is_causal counts where neither a mask nor is_causal is given.
    query: [B, H, M, D], any strides; in bf16 or f16, or under torch.autocast of any type, which casts all three.
    key, value: [B, G, N, D], any strides.
    attention_mask: the Mask of this forward pass, or None.
    scaling: of the scores; D**-0.5 by default.
    dropout: 0, also where a model is trained.
    softcap: of the scores, or None.
    s_aux, sinks: two names of the sinks, [H], or None; one of them is given, or both the same tensor.
    position_bias: [1 or B, H, M, N], added to the scaled scores (T5's), or None.
    is_causal, sliding_window: what counts where no mask is given; or None. The window of a layer that is not causal reaches as
        far ahead as back: |i - j| < sliding_window.
    deterministic: True: gradients with the same bits in every run, whatever register() was told; or None.
    output_attentions: None or False: a kernel keeps no weights.
    others: what else a model passes on; None, False, or of no effect.

    Returns ([B, M, H, D], None). Raises ArgumentError for dropout, for a mask of the caller's own, for two tensors of sinks, for a
    window below 1, for output_attentions=True and, by its name, for any other keyword that an answer may depend on (cu_seq_lens_q,
    block_indices, ...); and what `compile` and a `Compiled` raise."""
    if dropout:
        raise ArgumentError("attention", "dropout", f"is {dropout}", "be 0", hint="to train, set it to 0 in the model's "
                            "configuration (attention_dropout, attention_probs_dropout_prob, ...); else call model.eval()")
    if output_attentions:
        raise ArgumentError("attention", "output_attentions", "is True", "be False: a kernel keeps no weights",
                            hint='load the model with attn_implementation="eager" to look at them')
    if not isinstance(attention_mask, Mask | None):
        raise ArgumentError("attention", "attention_mask", f"is a {type(attention_mask).__name__} of the "
                            "caller's own", "be the tokenizer's mask [B, N], or None")
    _no_other(others)
    if softcap is not None and position_bias is not None:
        raise ArgumentError("attention", "position_bias", "is given beside a softcap", "be None: which of the "
                            "two comes first is not known here")
    if s_aux is not None and sinks is not None and s_aux is not sinks:
        raise ArgumentError("attention", "s_aux", "is given beside sinks, another tensor", "be None, or the same: both are the sinks",
                            hint="pass the sinks by one of the two names")
    s_aux = sinks if s_aux is None else s_aux
    mask = _mask_of(module, attention_mask, is_causal, sliding_window)
    if mask.keys is not None and mask.keys > key.shape[2]:
        raise ArgumentError("attention", "key", f"has {key.shape[2]} places",
                            f"have the {mask.keys} that the model's mask counts")
    query, key, value = _as_autocast_has_them(query, key[:, :, :mask.keys], value[:, :, :mask.keys])
    scale = query.shape[-1]**-0.5 if scaling is None else scaling
    bias = None
    if position_bias is not None:
        shape = (query.shape[0], query.shape[1], query.shape[2], key.shape[2])
        bias = position_bias[..., :key.shape[2]].to(query.dtype).expand(shape)
    options = {**(_options or {}), **({"deterministic": True} if deterministic else {})}
    given = (query, key, value, float(scale), mask.valid, mask.document, s_aux, bias)
    kind = (mask.causal, mask.window, mask.ahead, softcap, query.dtype, key.dtype, value.dtype, query.device, query.shape[1],
            key.shape[1], query.shape[3], value.shape[3], mask.valid is None, mask.document is None,
            None if s_aux is None else s_aux.dtype, bias is None, tuple(sorted(options.items())))
    return _kinds.call(kind, lambda: _make(attention_of(mask.causal, mask.window, softcap, mask.ahead), given, options), given), None


def _as_autocast_has_them(*tensors):
    """Operands of a product in the type that autocast would give them; as they are where there is none.

    A rotation's table is in the type of the hidden states, fp32 under autocast, and with it queries and keys, while values
    come from a projection in bf16."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return tuple(x.to(torch.get_autocast_dtype(device)) for x in tensors)


def _make(function, given, options):
    from . import compile
    try:
        return compile(function, _example(*given), **{"strict": True, **options})
    except SpecError:
        types = {x.dtype for x in given[:3]}
        if types <= {torch.bfloat16} or types <= {torch.float16}:
            raise
        named = " and ".join(sorted(str(t).split(".")[1] for t in types))
        raise ArgumentError("attention", "query, key, value", f"are {named}", "be bfloat16, or float16", hint="train with "
                            "bf16=True of TrainingArguments, which is autocast, or load the model with dtype=torch.bfloat16") from None


def _example(query, key, value, scale, valid, document, sinks, bias):
    """Inputs to compile with: of this layer's heads and types, of lengths that are always the same, so
    that another process with another prompt finds the kernel in the cache."""
    batch, length = 2, 256

    def like(x):
        return x.new_zeros(batch, length, x.shape[1], x.shape[3]).transpose(1, 2)

    def rows(x):
        return None if x is None else x.new_ones(batch, length)

    return (like(query), like(key), like(value), scale, rows(valid), rows(document),
            None if sinks is None else torch.zeros_like(sinks),
            None if bias is None else bias.new_zeros(batch, bias.shape[1], length, length))
