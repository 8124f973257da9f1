"""FlashAttention's functions by their names and arguments, on kernels of ours.

    from kernelwright.flash import flash_attn_func
    out = flash_attn_func(q, k, v, causal=True, window_size=(1024, 0), softcap=30.0)

    specifications.py   its options, written down as functions in plain PyTorch
    arguments.py        what callers give: what is refused, by its name
    dense.py            flash_attn_func: a batch of one length
    packed.py           flash_attn_varlen_func: sequences one behind the other
    cached.py           flash_attn_with_kvcache: new queries, and a cache of keys and values
    caches.py           where these lie: a row for each sequence, or pages

Each set of options is compiled once, for the heads and types that it is called with; lengths, the scale and slopes are arguments of
the kernel. Semantics are FlashAttention's: the last query stands at the last key's place, a window counts keys on either side of a
query's place, slopes are of the distance to it. A row without a key gives 0; its log-sum is -inf, where FlashAttention says inf.
"""

from .cached import flash_attn_with_kvcache
from .caches import in_pages
from .dense import flash_attn_func
from .packed import flash_attn_varlen_func
from .specifications import attention_of, cached_attention_of, packed_attention_of

__all__ = ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache",
           "attention_of", "packed_attention_of", "cached_attention_of", "in_pages"]
