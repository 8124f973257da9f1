"""Integers that wrap: `(i - j) * 100000` of int32 positions is negative from a distance of 21475 on.

PyTorch keeps 32 bits of what int32 tensors are added to and multiplied by, and 64 of int64 ones, without a word. The form computes
with whole numbers as they are, and so does a kernel, which has limits for its own sums. So the graph is walked
with the range of each integer, positions and sizes below 2^24 and numbers of integer arguments within 2^29, as
proofs take them; what may not fit its type then is refused at its line, and where an argument's full range would
not, the form says what it is taken for.
"""

import dataclasses

import torch

from . import exactness
from .diagnostic import Problem
from .exactness import Whole
from .graph import operator_name, place_of
from ..runtime.launch import LARGEST_SIZE

LARGEST_NUMBER = 2**29
SUMS = {"add", "sub", "rsub", "mul", "square", "pow", "bitwise_left_shift"}
OPERATORS = {"__lshift__": "bitwise_left_shift", "__ilshift__": "bitwise_left_shift", "__rshift__": "bitwise_right_shift",
             "__irshift__": "bitwise_right_shift", "__iand__": "__and__"}
OF_SIGN = {"neg", "bitwise_not"}  # of bytes, which have none


def refuse_wrapped_integers(traced):
    """Raises Problem for the first sum or product of integers that its type may not hold. Returns what the form
    takes for granted, as built_in.lines() does."""
    known, taken, constants = {}, [], exactness._constants(traced)
    for node in traced.program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            known[node] = Whole(-LARGEST_SIZE, LARGEST_SIZE)
        elif node.op == "placeholder" and isinstance(value, torch.Tensor):
            known[node] = _of_argument(exactness._of_placeholder(node, value, constants))
        elif node.op == "call_function" and isinstance(value, torch.Tensor) and not value.is_floating_point():
            known[node] = _range_of(node, value.dtype, known, taken)
    return taken[:1]


def _of_argument(whole):
    if whole is None or not whole.data:
        return whole
    return Whole(max(whole.low, -LARGEST_NUMBER), min(whole.high, LARGEST_NUMBER), True)


def _refuse_beyond(node, name):
    """PyTorch compares a byte with -1 as with 255: a Python number becomes one of the tensor's type."""
    values = [x.meta.get("val") if isinstance(x, torch.fx.Node) else x for x in node.args[:2]]
    types = [x.dtype for x in values if isinstance(x, torch.Tensor) and x.dtype in (torch.uint8, torch.int32)]
    if name not in exactness.COMPARISONS or not types:
        return
    bounds = torch.iinfo(types[0])
    other = next((x for x in values if isinstance(x, int) and not bounds.min <= x <= bounds.max), None)
    if other is not None:
        raise _refused(node, f"aten.{name} compares {exactness._short(types[0])} with {other}, of which PyTorch keeps {bounds.bits} bits",
                       "compare as torch.int64: ids.long()")


def _range_of(node, dtype, known, taken):
    name = operator_name(node)
    name = OPERATORS.get(name, name if name.endswith("__") else name.removesuffix("_"))
    operands = [exactness._operand(x, known) for x in node.args[:3]]
    if dtype == torch.bool:
        _refuse_beyond(node, name)
        return Whole(0, 1)
    bounds = torch.iinfo(dtype)
    out = operands[0] if name in exactness.CONVERSIONS else exactness._range(name, node, operands, dtype, known)
    if out is None and dtype != torch.int64 and name == "bitwise_left_shift":
        out = Whole(-(2.0**62), 2.0**62)
    if out is None:
        known_as = LARGEST_NUMBER if dtype == torch.int64 else bounds.max
        return Whole(-known_as if dtype.is_signed else 0, known_as)
    data = any(known[n].data for n in node.all_input_nodes if known.get(n))
    if name in SUMS and data and dtype == torch.int32:
        taken.append(f"numbers of integer arguments within 2^29 either way (int32 is computed with in line {place_of(node)[0]})")
    if (name in SUMS or (name in OF_SIGN and dtype == torch.uint8)) and not bounds.min <= out.low <= out.high <= bounds.max:
        raise _refused(
            node, f"aten.{name} makes {exactness._short(dtype)} of what may be {exactness._bound(out.low)} to "
            f"{exactness._bound(out.high)}, and keeps {bounds.bits} bits of it; a kernel would not wrap so",
            "where it should wrap, write the remainder" if dtype == torch.int64 else
            "compute in torch.int64: torch.arange(n) without a dtype, or .long() first; where it should wrap, write the "
            "remainder")
    return dataclasses.replace(out, low=max(out.low, bounds.min), high=min(out.high, bounds.max), data=out.data or data)


def _refused(node, message, hint):
    line, column = place_of(node)
    return Problem("spec.wraps", message, line, column, hint)
