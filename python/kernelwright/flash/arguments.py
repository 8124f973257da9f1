"""What callers of FlashAttention's functions give: what no kernel has is refused by its name, before anything is compiled."""

import torch

from ..errors import ArgumentError

# Options of FlashAttention-2 and -3 that change nothing here, each with what it may be: how the work is shared out is the
# kernel's own affair.
_WITHOUT_EFFECT = {"num_splits": (0, 1), "pack_gqa": (None, True, False), "sm_margin": (0,), "attention_chunk": (0,)}


class Options:
    """FlashAttention's options of one call."""

    def __init__(self, function, q, dropout_p, softmax_scale, causal, window_size, softcap, alibi_slopes, others):
        """function: its name, for messages; q: its first argument, of which heads and the head dimension are the last two.

        of_scores, of_keys: whether some are given that change scores, or which keys a query sees."""
        no_other(function, others)
        if dropout_p:
            raise ArgumentError(function, "dropout_p", f"is {dropout_p}", "be 0")
        self.causal, self.softcap = bool(causal), float(softcap)
        self.left, self.right = window(function, window_size, self.causal)
        self.scale = float(q.shape[-1]**-0.5 if softmax_scale is None else softmax_scale)
        self.slopes = alibi_slopes
        self.of_scores = softmax_scale is not None or bool(softcap) or alibi_slopes is not None
        self.of_keys = self.causal or max(self.left, self.right) >= 0

    @property
    def slopes_have(self):
        """How many dimensions the slopes have, or None: part of what a kernel is compiled for."""
        return None if self.slopes is None else self.slopes.dim()


def no_other(function, others):
    """Refuses options of other versions, by their names; `others` are the keywords that a function has no name for."""
    for name, value in others.items():
        if value is None or value in _WITHOUT_EFFECT.get(name, ()):
            continue
        raise ArgumentError(function, name, f"is given, a {type(value).__name__}", "be None: no kernel here has it",
                            hint="say what it means as a function in plain PyTorch, and compile that: kernelwright.compile")


def tensors(function, dimensions, **given):
    """Refuses what is no tensor of these dimensions, of which the last but one is heads, or k with heads that do not divide q's."""
    for name, x in given.items():
        if not isinstance(x, torch.Tensor) or x.dim() != len(dimensions):
            what = f"has {x.dim()} dimensions" if isinstance(x, torch.Tensor) else f"is a {type(x).__name__}"
            raise ArgumentError(function, name, what, f"be a tensor [{', '.join(dimensions)}]")
    q, (name, k) = next(iter(given.values())), list(given.items())[1]
    if k.shape[-2] == 0 or q.shape[-2] % k.shape[-2]:
        raise ArgumentError(function, name, f"has {k.shape[-2]} heads", f"have a number that divides the {q.shape[-2]} of q")


def window(function, window_size, causal):
    """(left, right) of a window, each -1 for all."""
    left, right = (-1 if x is None else int(x) for x in window_size)
    if min(left, right) < -1:
        raise ArgumentError(function, "window_size", f"is {tuple(window_size)}", "have numbers of keys, or -1")
    return left, -1 if causal else right  # a causal query sees none behind, whatever the window says


def slopes(function, given, *shapes):
    """Refuses slopes that are not fp32 of one of these shapes."""
    if given is None:
        return
    if given.dtype != torch.float32 or tuple(given.shape) not in shapes:
        named = str(given.dtype).split(".")[1]
        raise ArgumentError(function, "alibi_slopes", f"is {named} {list(given.shape)}",
                            f"be float32 {' or '.join(str(list(s)) for s in shapes)}, one for each head of q")


def integers(function, name, given, shape, device):
    """Refuses what is no int32 tensor of this shape on this device."""
    if not isinstance(given, torch.Tensor):
        raise ArgumentError(function, name, f"is a {type(given).__name__}", f"be an int32 tensor {list(shape)}")
    if given.dtype != torch.int32 or tuple(given.shape) != tuple(shape):
        named = str(given.dtype).split(".")[1]
        raise ArgumentError(function, name, f"is {named} {list(given.shape)}", f"be int32 {list(shape)}")
    if given.device != device:
        raise ArgumentError(function, name, f"is on {given.device}", f"be on {device}, where q is")
