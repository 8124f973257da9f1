"""The composed function held against the user's, with the regions' own functions in the place of the kernels.

A kernel is checked against its region's function by the checker. That the regions, cut out and put back, are the user's function is
this package's own doing, and a mistake in it would be wrong numbers without a word. So the composition runs once on the example and
once on other sizes, as PyTorch, beside the user's own; what differs is our fault and is raised as such.

Not compared: functions that draw random numbers. With `dtype=`, fp32 results are held to what the narrower type gives.
"""

import contextlib
import dataclasses

import torch
from torch.utils._pytree import tree_flatten, tree_map

from ...errors import ArgumentError, InternalError
from .compose import compose
from .effects import is_random
from .sizes import Sizes

CLOSE = {torch.float32: 2e-4, torch.bfloat16: 3e-2, torch.float16: 6e-3, torch.float64: 1e-6}  # of the norm
NARROWED = 4  # times that, where operands are cast: in each of several layers
LONGEST = 4096  # of sizes that are tried because a condition names them
LARGEST = 2**25  # elements of all arguments, above which the example itself is not run once more


def hold(traced, chosen, args, keywords, device):
    """Raises InternalError where the composed function is not the user's; False where it is not for sizes of 1 alone."""
    if any(is_random(n) for n in traced.graph.nodes):
        return True
    small = sum(x.numel() for x in traced.leaves if isinstance(x, torch.Tensor)) <= LARGEST
    both = _Both(traced, chosen, args, keywords, device)
    for given, what in [*([((args, keywords), "in the example")] if small else []), (both.resized(3), "for other sizes"),
                        (both.resized(5), "for other sizes")]:
        differs = both.differ(given)
        if differs:
            raise InternalError(f"{traced.name}: what stands around its kernels {differs}, {what}\n{both.text}")
    return not both.differ(both.resized(0))


def no_exceptions(traced, chosen, args, keywords, device):
    """Of the conditions that a size is not some number: those where it may be. A slice as long as its table is another slice to the
    trace, `bias[:, :, :1024]` of 1024 rows, and gives the same; so the number is tried."""
    names = {node: "_" for node, given in traced.inputs.items() if given.kind == "given"}
    conditions = {c for c in Sizes(traced, names).exceptions if len(c.free_symbols) == 1 and any(
        getattr(side, "is_Integer", False) and 1 < int(side) <= LONGEST for side in c.args)}
    if not conditions or any(is_random(n) for n in traced.graph.nodes):
        return set()
    traced.no_exceptions, found = conditions, set()
    both = _Both(traced, chosen, args, keywords, device)
    for condition in conditions:
        symbol, size = next(iter(condition.free_symbols)), next(int(side) for side in condition.args if side.is_Integer)
        given = both.resized(3, {symbol: size})
        if given is not None and both.differ(given) == "" and both.compared:
            found.add(condition)
    return found


@contextlib.contextmanager
def _no_short_cuts():
    """Without the fused layers that PyTorch takes where no gradient is asked for: their last bits are others."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class _Both:
    """The user's function and the composed one, with the regions' own functions in the place of kernels."""

    def __init__(self, traced, chosen, args, keywords, device):
        self.traced, self.args, self.keywords = traced, args, keywords
        plain = [dataclasses.replace(c, call=c.function.function) for c in chosen]
        self.composed, _, self.text = compose(traced, plain, args, keywords, device)
        self.narrow = next((c.function.values[0].dtype for c in chosen if c.function.cast), None)
        self.compared = False

    def differ(self, given):
        """What the composed function gives otherwise than the user's, in words; "" for nothing, and where one refuses the call."""
        self.compared = False
        if given is None:
            return ""
        with torch.no_grad(), _no_short_cuts():
            try:
                due = self.traced.target(*_copied(given[0]), **_copied(given[1]))
            except Exception:  # noqa: BLE001  sizes that the user's function does not take
                return ""
            try:
                found = _difference(self.traced, due, self.composed(*_copied(given[0]), **_copied(given[1])), self.narrow)
            except ArgumentError:  # refused, so not wrong
                return ""
            except Exception as error:  # noqa: BLE001  its own operators take what the user's do, but for sizes of 1
                found = f"raises {type(error).__name__}: {error}"
        self.compared = True
        return found

    def resized(self, scale, fixed=()):
        return _resized(self.traced, self.args, self.keywords, scale, dict(fixed))


def _difference(traced, due, got, narrow):
    """What is another than the function's, in words; "" for nothing."""
    due, due_spec = tree_flatten(due)
    got, got_spec = tree_flatten(got)
    if due_spec != got_spec:
        return f"gives {got_spec}, the function {due_spec}"
    for n, (a, b) in enumerate(zip(due, got)):
        if not isinstance(a, torch.Tensor):
            if a is not b and a != b:
                return f"gives {b!r} as output {n}, the function {a!r}"
        elif a.shape != b.shape or a.dtype != b.dtype:
            return f"gives {b.dtype} {list(b.shape)} as output {n}, the function {a.dtype} {list(a.shape)}"
        elif not _alike(a, b, narrow):
            return f"gives other numbers than the function as output {n}"
    return ""


def _alike(a, b, narrow):
    if not a.is_floating_point():
        return torch.equal(a, b)
    limit = NARROWED * CLOSE[narrow] if narrow else CLOSE.get(a.dtype, 1e-2)
    a, b = a.double(), b.double()
    gone = a.isnan() | ~a.isfinite()  # rows without a key
    a, b = a.masked_fill(gone, 0), b.masked_fill(gone, 0)
    return bool((a - b).norm() <= limit * a.norm() + 1e-6)


def _copied(value):
    """Arguments whose tensors are copies, the same ones where they were the same."""
    memo = {}
    return tree_map(lambda x: memo.setdefault(id(x), x.detach().clone()) if isinstance(x, torch.Tensor) else x, value)


def _resized(traced, args, keywords, scale, fixed):
    """Arguments of other sizes wherever the trace leaves one open: rows of the example, again and again; None where none is open."""
    nodes = {i.index: n for n, i in traced.inputs.items() if i.kind == "given"}
    sizes, memo, changed = fixed, {}, False
    order = iter(range(len(traced.leaves)))

    def resize(x):
        nonlocal changed
        if not isinstance(x, torch.Tensor):
            return x
        node = nodes[next(order)]
        if id(x) in memo:
            return memo[id(x)]
        out = x.detach()
        for d, size in enumerate(node.meta["val"].shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                due = size.node.expr.xreplace(traced.same)
                if not due.is_Symbol and not due.free_symbols <= sizes.keys():
                    continue
                due = sizes.setdefault(due, 2 + len(sizes) + scale * (3 if sizes else 0) if scale else 1) if due.is_Symbol else due.subs(sizes)
                new = int(due)
                out = out.index_select(d, torch.arange(new, device=out.device) % out.shape[d])
                changed = True
        memo[id(x)] = out
        return out

    given = tree_map(resize, (tuple(args), dict(keywords)))
    return given if changed else None
