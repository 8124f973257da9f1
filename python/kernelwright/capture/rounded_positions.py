"""Positions that 16 bits do not hold: `i.to(q.dtype)`, `torch.arange(n, dtype=torch.bfloat16)`, `i.half() ** 2`.

The form, and a kernel, compute with positions and sizes as they are. PyTorch rounds them as the type says: bf16 holds whole
numbers up to 2^8, fp16 up to 2^11 and none above 65504. A row of the output times `i.to(q.dtype) - (N - 1)` is another row
then, an angle of RoPE another angle. What only compares them is refused by exactness.py; here it is what computes. So
the graph is walked once more with the range of what is computed of integers and of numbers alone, and a
whole number that its type may not hold is refused at the operator that rounds it.

What is no whole number, a cosine or a slope of one head, is rounded by half an ulp. As long as it stays small, below EXACT / 16,
that is an absolute error of 2^-5 at most, as in agreement.py, and the function's own. It is followed: times a position it is no small one any
more. Literal numbers that a mask chooses among, -1e9 and 0, are no positions, however large. Where a floating argument comes in, there is
no exact number to keep, but for an integer that PyTorch makes 16 bits of at the same operator: `(q @ k.mT) - (i - j)`.
"""

import dataclasses
import math

import torch

from . import exactness
from .diagnostic import Problem
from .exactness import CONVERSIONS, EXACT, LARGEST_SIZE, SAME_VALUES, Whole, _first
from .graph import operator_name, place_of
from .sixteen_bits import COARSE

FILLED = {"ones": None, "ones_like": None, "new_ones": None, "zeros": None, "zeros_like": None, "new_zeros": None, "eye": None,
          "full": 1, "full_like": 1, "new_full": 2, "scalar_tensor": 0}  # where the number stands that a tensor is filled with
NUMBERS = SAME_VALUES | CONVERSIONS | FILLED.keys() | {
    "add", "sub", "rsub", "mul", "square", "pow", "abs", "neg", "sign", "relu", "minimum", "maximum", "min", "max", "amin", "amax", "clamp",
    "clamp_min", "clamp_max", "clip", "where", "masked_fill", "cat", "concat", "concatenate", "stack", "tril", "triu"}
WHOLE_OF_WHOLE = NUMBERS | {"arange", "sum", "fmod", "remainder"}
OF_LITERALS = NUMBERS | {"div", "true_divide"}
OF_INDICES = SAME_VALUES | FILLED.keys()  # an integer tensor beside them is an index, or of the same shape
ROUNDED = {"floor", "ceil", "round", "trunc"}
BETWEEN = {"cos": (-1, 1), "sin": (-1, 1), "tanh": (-1, 1), "erf": (-1, 1), "sign": (-1, 1), "sigmoid": (0, 1), "softmax": (0, 1)}
RISING = {"exp": math.exp, "exp2": lambda x: 2.0**x, "log": math.log, "log2": math.log2, "log1p": math.log1p, "sqrt": math.sqrt,
          "relu": lambda x: max(x, 0)}
FALLING = {"reciprocal": lambda x: 1 / x, "rsqrt": lambda x: x**-0.5}
ANY = Whole(-math.inf, math.inf)


@dataclasses.dataclass(frozen=True)
class Known:
    """What is computed of integers and of numbers alone."""
    range: Whole
    whole: bool = True
    choice: bool = False  # a number that the function says, whatever the position
    coarse: object = None  # the node that rounded it to 16 bits


class _Ranges:
    """Of what is known, for exactness.py."""

    def __init__(self, known):
        self.known = known

    def get(self, node):
        found = self.known.get(node)
        return found and found.range


def refuse_rounded_positions(traced):
    """Raises Problem for the first operator whose 16 bits may not hold what is computed of positions."""
    known, constants = {}, exactness._constants(traced)
    for node in traced.program.graph.nodes:
        value = _first(node)
        if isinstance(value, torch.SymInt):
            known[node] = Known(Whole(-LARGEST_SIZE, LARGEST_SIZE))
        elif isinstance(value, torch.SymFloat):
            known[node] = Known(ANY, whole=False)
        elif node.op == "placeholder" and isinstance(value, torch.Tensor):
            of = exactness._of_placeholder(node, value, constants)
            known[node] = of and Known(of)
        elif node.op == "call_function" and isinstance(value, torch.Tensor):
            known[node] = _of_node(node, value.dtype, known)


def _of_node(node, dtype, known):
    name = "getitem" if "getitem" in str(node.target) else operator_name(node).rstrip("_")
    if dtype in COARSE and name not in OF_INDICES:
        _refuse_integers(node, name, dtype, known)
    inputs = [known.get(n) for n in _made_of(name, node)]
    choice = name in OF_LITERALS and all(x and x.choice for x in inputs)
    if not dtype.is_floating_point:
        return Known(_integers(name, node, dtype, known), choice=choice or dtype == torch.bool)
    if not all(inputs):
        return None
    return _rounded(node, dtype, Known(_reals(name, node, _Ranges(known)), _is_whole(name, node, inputs, _Ranges(known)), choice,
                                       next((x.coarse for x in inputs if x.coarse), None)))


def _made_of(name, node):
    """The inputs that have the numbers of it, not its sizes and indices."""
    if name in FILLED:
        given = [] if FILLED[name] is None else [node.args[FILLED[name]]]
        return [x for x in given if isinstance(x, torch.fx.Node)]
    return [node.args[0]] if name in SAME_VALUES | CONVERSIONS else node.all_input_nodes


def _rounded(node, dtype, out):
    """What is left of it in its type."""
    largest = out.range.largest()
    if dtype in COARSE and not (out.whole and largest <= EXACT[dtype]):
        if not out.choice and (out.whole or not largest <= EXACT[dtype] / 16):
            raise _refused(node, node, out.range, dtype)
        return dataclasses.replace(out, coarse=out.coarse or node)
    if out.coarse and not out.choice and not largest <= EXACT[_first(out.coarse).dtype] / 16:
        raise _refused(out.coarse, node, out.range, _first(out.coarse).dtype)
    return out


def _refuse_integers(node, name, dtype, known):
    """PyTorch makes 16 bits of an integer tensor beside one of 16 bits; of a number it does not. What data is multiplied with or divided
    by errs as the result does, which is rounded as well."""
    for n, x in enumerate(node.all_input_nodes):
        value, of = x.meta.get("val"), known.get(x)
        if not isinstance(value, torch.Tensor) or value.is_floating_point() or value.dim() == 0 or not of:
            continue
        as_factor = name == "mul" and of.range.largest() <= torch.finfo(dtype).max or name in ("div", "true_divide") and n == 1
        if of.range.largest() > EXACT[dtype] and not (as_factor and len(node.all_input_nodes) == 2):
            raise _refused(node, node, of.range, dtype)


def _is_whole(name, node, inputs, ranges):
    if name in ROUNDED or name == "floor_divide" or node.kwargs.get("rounding_mode"):
        return True
    numbers = [x for x in [*node.args, *node.kwargs.values()] if isinstance(x, float) and math.isfinite(x)]
    by = exactness._operand(node.args[1], ranges) if name == "pow" else None
    return name in WHOLE_OF_WHOLE and all(x.whole for x in inputs) and all(x == int(x) for x in numbers) and not (by and by.low < 0)


# ---- ranges


def _integers(name, node, dtype, known):
    ranges = _Ranges(known)
    operands = [exactness._operand(x, ranges) for x in node.args[:3]]
    if dtype == torch.bool:
        return Whole(0, 1)
    if any(isinstance(x, torch.Tensor) and x.is_floating_point() for x in map(_first, node.all_input_nodes)):
        return exactness._of_type(dtype, True)
    if name in CONVERSIONS:
        return operands[0] or exactness._of_type(dtype, True)
    return exactness._range(name, node, operands, dtype, ranges) or exactness._of_type(dtype, True)


def _reals(name, node, ranges):
    operands = [exactness._operand(x, ranges) for x in node.args[:3]]
    a, b = (operands + [None, None])[:2]
    if name in BETWEEN:
        return Whole(*BETWEEN[name])
    if name in FILLED:
        return Whole(0, 1) if FILLED[name] is None else operands[FILLED[name]]
    if name in CONVERSIONS | {"mean", "amax", "amin"}:
        return a
    try:
        return _numbers(*_ends(name, node, operands, a, b, ranges))
    except (ValueError, OverflowError, ZeroDivisionError):
        return ANY


def _ends(name, node, operands, a, b, ranges):
    """Numbers that those of the result lie between."""
    if name in RISING or name in FALLING:
        at = RISING.get(name) or FALLING[name]
        return [math.nan] if name in FALLING and a.low <= 0 else [at(a.low), at(a.high)]
    if name in ROUNDED:
        return [a.low - 1, a.high + 1]
    if name == "neg":
        return [-a.low, -a.high]
    both = [(x, y) for x in (a.low, a.high) for y in (b.low, b.high)] if a and b else []
    if name == "mul" and both:
        return [x * y for x, y in both]
    if name in ("div", "true_divide", "floor_divide") and both:
        return [math.nan] if b.low <= 0 <= b.high else [x / y + down for x, y in both for down in (0, -1)]
    if name == "pow" and both:
        counted = b.low == b.high == int(b.low) > 0
        return [x**y for x, y in both] + ([0.0] if a.low <= 0 else []) if counted or a.low > 0 else [math.nan]
    found = exactness._range(name, node, operands, torch.float32, ranges) or ANY
    return [found.low, found.high]


def _numbers(*values):
    return ANY if any(math.isnan(x) for x in values) else Whole(min(values), max(values))


def _refused(at, node, range, dtype):
    """at: what rounds. node: what makes it, or what comes of it, as large as that."""
    name, kind = exactness._word(at), exactness._short(dtype)
    line, column = place_of(at)
    bounds = f"{exactness._bound(range.low)} to {exactness._bound(range.high)}"
    if at is not node:
        what = f"rounds to {kind} what is computed of positions, and what line {place_of(node)[0]} makes of it may be {bounds}"
    else:
        what = f"makes {kind} of what is computed of positions and may be {bounds}"
    return Problem("spec.rounding", f"{name} {what}; {kind} holds whole numbers up to {EXACT[dtype]} and others, up to {EXACT[dtype] // 16}, "
                   "within 1/32, and a kernel computes with positions as they are", line, column,
                   "compute in float32: i.float(), torch.arange(n, dtype=torch.float32)")
