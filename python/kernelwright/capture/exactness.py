"""Integers that a conversion changes: ids in 8 bits, positions in bf16, document numbers in fp32.

The form computes with whole numbers as they are. PyTorch keeps what a type can hold: `.to(torch.uint8)`
the low eight bits, bf16 whole numbers up to 2^8, fp16 up to 2^11, fp32 up to 2^24. In a score that is
rounding, which the function's own error measures. In a mask or an index it is another function: documents 0
and 256 become one. So the graph is walked once with the range of each integer, and what is compared, or made
an integer again, after a conversion that its range does not fit into is refused at the conversion's own line.

A position or a size is below 2^31, and below 2^24 wherever a kernel takes it as a real (launches require
both), so positions in fp32 are exact; what comes from integer arguments may be any number of their type, and
int64 arguments hold 32 bits, as launches take them. What is computed of them in reals and is no whole number, `i * 0.3`
or `j / 100`, is rounded: where two such are equal, or nearly, PyTorch's roundings decide how they compare, and a kernel's
or fp64's decide otherwise. So a comparison of these is refused, too. Only values that are computed from integers alone are
followed: where a floating argument comes in, there was no exact number to keep.
"""

import dataclasses
import math

import torch

from .diagnostic import Problem
from .graph import DTYPES, operator_name, place_of

LARGEST_SIZE = 2**31 - 1
EXACT = {torch.float64: 2**53, torch.float32: 2**24, torch.float16: 2**11, torch.bfloat16: 2**8,
         torch.float8_e4m3fn: 2**4}
COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne"}
MADE_WHOLE = {"floor", "ceil", "round", "trunc", "floor_divide", "remainder"}
CONVERSIONS = {"to", "_to_copy", "type_as"}
SAME_VALUES = {"view", "reshape", "unsqueeze", "squeeze", "expand", "transpose", "permute", "slice", "select",
               "flatten", "unflatten", "contiguous", "clone", "repeat", "repeat_interleave", "expand_as", "mT", "t",
               "numpy_T", "index", "index_select", "gather", "embedding", "detach", "alias", "movedim", "unbind",
               "getitem", "broadcast_to", "view_as", "roll", "flip", "lift_fresh_copy", "diagonal"}


@dataclasses.dataclass(frozen=True)
class Whole:
    """A value computed from integers alone, between low and high."""
    low: float
    high: float
    data: bool = False  # an integer argument is in it
    lost: object = None  # (node, dtype) of a conversion that does not fit, on the way
    rounded: object = None  # the node of an operation on reals that rounds, on the way

    def largest(self):
        return max(abs(self.low), abs(self.high))


def refuse_lost_integers(traced):
    """Raises Problem for the first integer that is decided by after it lost bits. Returns what is known of each node."""
    from .integers_of_reals import IntegersOfReals
    known = {}
    scalars = _constants(traced)
    whole = IntegersOfReals(known, scalars)
    for node in traced.program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            known[node] = Whole(-LARGEST_SIZE, LARGEST_SIZE)
        elif isinstance(value, torch.SymFloat):
            known[node] = _of_size_as_real(node, known)
        elif node.op == "placeholder" and isinstance(value, torch.Tensor):
            known[node] = _of_placeholder(node, value, scalars) or _of_real_constant(scalars.get(node.name))
        elif node.op == "call_function" and isinstance(value, (torch.Tensor, list, tuple)):
            known[node] = _of_node(node, value, known, whole)
    return known


def _first(node):
    value = node.meta.get("val")
    return value[0] if isinstance(value, (list, tuple)) and value else value


def _name(node):
    return "getitem" if "getitem" in str(node.target) else operator_name(node).rstrip("_")


def _of_placeholder(node, value, constants):
    constant = constants.get(node.name)
    if constant is not None and constant.numel() and not constant.is_floating_point():
        return Whole(int(constant.min()), int(constant.max()))
    return None if value.is_floating_point() else _of_type(value.dtype, True)


def _of_real_constant(constant):
    """A tensor of numbers that the function says: `torch.tensor(0.0048)`."""
    if constant is None or not constant.numel() or constant.isnan().any():
        return None
    return Whole(float(constant.min()), float(constant.max()))


def _of_size_as_real(node, known):
    """`N / 7`: of sizes, as Python has it."""
    operands = [_operand(x, known) for x in node.args[:2]]
    name = getattr(node.target, "__name__", "")
    name = {"truediv": "div", "int_truediv": "div", "float_truediv": "div", "sym_float": "to"}.get(name, name)
    known_all = [x for x in operands if x is not None]
    rounding = _rounding(name, node, operands, known_all) if len(known_all) == len(operands) else node
    return Whole(-float("inf"), float("inf"), rounded=rounding)


def _of_type(dtype, data):
    if dtype == torch.bool:
        return Whole(0, 1, data)
    bounds = torch.iinfo(torch.int32 if dtype == torch.int64 else dtype)
    return Whole(bounds.min, bounds.max, data)


def _constants(traced):
    from .goldens import _constants as tensors
    return tensors(traced)


def _operand(x, known):
    if isinstance(x, torch.fx.Node):
        return known.get(x)
    if isinstance(x, bool) or isinstance(x, (int, float)):
        return Whole(x, x)
    return None


def _of_node(node, value, known, whole):
    first = value[0] if isinstance(value, (list, tuple)) else value
    if not isinstance(first, torch.Tensor):
        return None
    name, dtype = _name(node), first.dtype
    if not dtype.is_floating_point and dtype not in DTYPES:
        raise _refused(node, f"{_word(node)} makes {_short(dtype)}, a type that no kernel computes in",
                       "use torch.int32, and a remainder or a mask of bits where it should wrap")
    operands = [_operand(x, known) for x in node.args[:3]]
    if name in COMPARISONS or name in CONVERSIONS and dtype == torch.bool:
        _decided_by_rounding(node, operands[:2] if name in COMPARISONS else operands[:1])
    rounded = _made_whole_of(node, name, dtype, operands, known)
    if rounded:
        whole.refuse(node, rounded)
        return Whole(-LARGEST_SIZE, LARGEST_SIZE, any(x is not None and x.data for x in operands)) if dtype.is_floating_point else \
            _of_type(dtype, True)
    if name in COMPARISONS:
        for out in operands[:2]:
            _decided(out, node)  # what was converted before, at its own line
        for x, out in zip(node.args[:2], operands):
            _decided(_as_float(node, x, out, _common(node)), node)
        return Whole(0, 1)
    if name in MADE_WHOLE and dtype.is_floating_point and operands[0]:
        _decided(operands[0], node)
    if name in CONVERSIONS and operands[0]:
        return _converted(node, operands[0], dtype)
    if name in CONVERSIONS and not dtype.is_floating_point and dtype not in (torch.int32, torch.int64, torch.bool):
        raise _refused(node, f"{_word(node)} keeps {torch.iinfo(dtype).bits} bits of a real of any size", "use torch.int32")
    inputs = [known.get(n) for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    rounding = dtype.is_floating_point and inputs and all(inputs) and _rounding(name, node, operands, inputs)
    if name == "arange" and any(isinstance(x, float) and x * 256 != int(x * 256) for x in [*node.args, *node.kwargs.values()]):
        rounding = node
    if rounding:
        return Whole(-float("inf"), float("inf"), any(i.data for i in inputs), rounded=rounding)
    out = _range(name, node, operands, dtype, known)
    if out is None:
        return None if dtype.is_floating_point else _of_type(dtype, True)
    data = any(i is not None and i.data for i in inputs)
    lost = next((i.lost for i in inputs if i is not None and i.lost), None)
    out = dataclasses.replace(out, data=out.data or data, lost=out.lost or lost)
    if not dtype.is_floating_point:
        return dataclasses.replace(out, lost=None)
    for x in node.args[:3]:
        converted = _as_float(node, x, _operand(x, known), dtype)
        if converted and converted.lost:
            return dataclasses.replace(out, lost=out.lost or converted.lost)
    created = name in ("arange", "full", "scalar_tensor") and not out.lost
    return _lossy(node, out, dtype) if created else out


def _made_whole_of(node, name, dtype, operands, known):
    """What rounds a real of integers that this node makes whole, or a remainder or a sign of; None where it makes nothing such."""
    mode = node.kwargs.get("rounding_mode") or name in MADE_WHOLE | {"sign"}
    if not mode and dtype.is_floating_point or name in COMPARISONS | SAME_VALUES:
        return None
    tensors = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    if any(known.get(n) is None for n in tensors):
        return None  # of data
    numbers = [x for x in [*node.args[:3], *node.kwargs.values()] if isinstance(x, float)]
    unheld = mode and any(torch.tensor(x, dtype=torch.float32).item() != x for x in numbers)
    return next((x.rounded for x in operands if x is not None and x.rounded), None) or (node if unheld else None)


LARGEST_TERM = 2**16  # that leaves positions below 2^24 what they are
EXACT_OF_REALS = SAME_VALUES | MADE_WHOLE | CONVERSIONS | {
    "neg", "abs", "clamp", "clamp_min", "clamp_max", "clip", "minimum", "maximum", "min", "max", "where", "masked_fill", "cat", "stack",
    "tril", "triu", "arange", "ones", "ones_like", "zeros", "zeros_like", "full", "full_like", "scalar_tensor", "fmod",
    "amax", "amin", "relu"}


def _rounding(name, node, operands, inputs):
    """The operation on reals that rounds what is computed of integers alone: this one, or one before it; None where the
    result is a whole number, or one with few digits behind the point."""
    before = next((i.rounded for i in inputs if i.rounded), None)
    if before or name in EXACT_OF_REALS:
        return before
    numbers = [x.low for x in operands if x is not None and x.low == x.high]
    numbers += [x for x in node.kwargs.values() if isinstance(x, float)]
    if name in ("add", "sub", "rsub"):
        return None if all(abs(x) < LARGEST_TERM and x * 256 == int(x * 256) for x in numbers) else node
    if name == "mul" and numbers:
        return None if all(_is_power_of_two(x) for x in numbers if x) else node
    if name in ("sum", "matmul", "mm", "bmm", "einsum"):
        return None if _are_whole(node) else node
    if name in ("mul", "square"):
        return None if _product_is_exact(node, inputs) else node
    if name in ("div", "true_divide"):
        by = operands[1] if len(operands) > 1 else None
        exact = node.kwargs.get("rounding_mode") or (by and by.low == by.high and _is_power_of_two(by.low))
        return None if exact else node
    return node


def _product_is_exact(node, inputs):
    """In fp32: of whole numbers as they were, zeros and ones or below 2^24. A square's factors are one input."""
    a, b = inputs[0].largest(), inputs[-1].largest()
    return _are_whole(node) and (min(a, b) <= 1 or a * b <= 2**24)


def _are_whole(node):
    """The inputs: integers, or conversions of them."""
    values = [(n, n.meta["val"]) for n in node.all_input_nodes]
    return all(not (value.is_floating_point() if isinstance(value, torch.Tensor) else isinstance(value, torch.SymFloat))
               or _name(n) in CONVERSIONS for n, value in values)


def _is_power_of_two(x):
    return x != 0 and abs(math.frexp(x)[0]) == 0.5


def _decided_by_rounding(node, operands):
    at = next((x.rounded for x in operands if x is not None and x.rounded), None)
    if at is None or any(x is None for x in operands):
        return
    line, column = place_of(node)
    raise Problem("spec.rounding", f"{_word(node)} compares reals that are computed of positions, and {_word(at)} in line "
                  f"{place_of(at)[0]} rounds one: where both sides are equal, or nearly, the rounding decides, and a kernel's may be another",
                  line, column, "compare integers, as in `10 * j < 3 * i`, or pass the mask as an argument")


def _range(name, node, operands, dtype, known):
    """Bounds of what an operator gives of integers; None where it has other inputs, or is not known."""
    if name in SAME_VALUES:
        return operands[0]
    if name == "arange":
        ends = [x for x in (_operand(x, known) for x in node.args[:2]) if x]
        return Whole(min([0, *(x.low for x in ends if x.low == x.high)]), max(x.high for x in ends)) if ends else None
    if name in ("ones", "ones_like", "zeros", "zeros_like", "tril", "triu"):
        if name in ("tril", "triu"):
            return operands[0] and dataclasses.replace(operands[0], low=min(0, operands[0].low),
                                                       high=max(0, operands[0].high))
        return Whole(0, 1)
    if name in ("full", "full_like"):
        return _operand(node.args[1], known) if node.args[1:] else None
    if name == "scalar_tensor":
        return operands[0]
    if name in ("logical_and", "logical_or", "logical_not", "logical_xor"):
        return Whole(0, 1)
    if name == "where" or name == "masked_fill":
        chosen = [operands[1], operands[2]] if name == "where" else [operands[0], operands[2]]
        return _hull(*chosen) if all(chosen) else None
    if name in ("cat", "stack"):
        parts = [_operand(x, known) for x in node.args[0]]
        return _hull(*parts) if all(parts) else None
    if name in ("clamp", "clamp_min", "clamp_max", "clip") and operands[0]:
        return _clamped(name, node, operands[0], known)
    if not operands or any(x is None for x in operands[:2]):
        return None
    if name in ("add", "sub", "rsub") and node.kwargs.get("alpha", 1) != 1:  # other + alpha * input
        scaled = 0 if name == "rsub" else 1
        times = _operand(node.kwargs["alpha"], known)
        if times is None:
            return None
        operands = [_arithmetic("mul", [x, times], dtype) if n == scaled else x for n, x in enumerate(operands)]
    return _arithmetic(name, operands, dtype)


def _clamped(name, node, a, known):
    given = dict(zip(("min", "max") if name != "clamp_max" else ("max",), node.args[1:]), **node.kwargs)
    least, most = (_operand(given.get(end), known) for end in ("min", "max"))
    if (given.get("min") is not None and not least) or (given.get("max") is not None and not most):
        return None
    low, high = a.low, a.high
    if least:
        low, high = max(low, least.low), max(high, least.high)
    if most:
        low, high = min(low, most.low), min(high, most.high)
    return dataclasses.replace(a, low=low, high=high)


def _arithmetic(name, operands, dtype):
    a, b = operands[0], operands[1] if len(operands) > 1 else None
    if name in ("neg", "bitwise_not"):
        return Whole(-a.high - 1, -a.low + 1)
    if name in ("abs", "square"):
        return Whole(0, a.largest() ** (2 if name == "square" else 1))
    if b is None:
        return Whole(-float("inf"), float("inf")) if dtype.is_floating_point else None
    if name in ("add", "sub", "rsub"):
        other = (b.low, b.high) if name == "add" else (-b.high, -b.low)
        return Whole(a.low + other[0], a.high + other[1]) if name != "rsub" else Whole(b.low - a.high, b.high - a.low)
    if name in ("minimum", "min", "maximum", "max"):
        least = name.startswith("min")
        pick = min if least else max
        return Whole(pick(a.low, b.low), pick(a.high, b.high))
    if name == "pow":
        if not (a.low == int(a.low) and b.low >= 0 and b.high < 64):
            return Whole(-float("inf"), float("inf"))
        return Whole(-int(a.largest()) ** int(b.high), int(a.largest()) ** int(b.high))
    if name == "mul":
        products = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        return Whole(min(products), max(products))
    if name in ("bitwise_left_shift", "__lshift__") and 0 <= b.low <= b.high < 64:
        return Whole(min(a.low, a.low * 2**b.high), max(a.high, a.high * 2**b.high))
    if name in ("floor_divide", "div", "__rshift__", "bitwise_right_shift"):
        return _hull(a, Whole(-1, 0)) if b.low >= 0 else Whole(-a.largest() - 1, a.largest())
    if name in ("remainder", "fmod"):
        return Whole(min(0, b.low), max(0, b.high))
    if name in ("bitwise_and", "__and__") and (a.low >= 0 or b.low >= 0):
        return Whole(0, min(x.high for x in (a, b) if x.low >= 0))
    return Whole(-float("inf"), float("inf")) if dtype.is_floating_point else None


def _hull(*parts):
    return Whole(min(p.low for p in parts), max(p.high for p in parts), any(p.data for p in parts),
                 next((p.lost for p in parts if p.lost), None))


# ---- conversions


def _common(node):
    """The type in which PyTorch compares."""
    values = [x.meta.get("val") if isinstance(x, torch.fx.Node) else x for x in node.args[:2]]
    if any(isinstance(x, (torch.SymInt, torch.SymFloat)) for x in values):
        values = [1 if isinstance(x, torch.SymInt) else 1.0 if isinstance(x, torch.SymFloat) else x for x in values]
    return torch.result_type(*values)


def _as_float(node, operand, whole, common):
    """An operand after PyTorch has promoted it to `common`, where it is an integer tensor."""
    value = operand.meta.get("val") if isinstance(operand, torch.fx.Node) else None
    is_integer = isinstance(value, torch.Tensor) and not value.is_floating_point()
    return _lossy(node, whole, common) if whole and is_integer and common.is_floating_point else whole


def _lossy(node, whole, dtype):
    of_positions = dtype == torch.float32 and not whole.data and whole.largest() <= 4 * LARGEST_SIZE
    if whole.lost or of_positions or whole.largest() <= EXACT.get(dtype, 0):
        return whole
    return dataclasses.replace(whole, lost=(node, dtype, whole))


def _converted(node, whole, dtype):
    source = node.args[0].meta["val"].dtype
    if dtype.is_floating_point:
        return _lossy(node, whole, dtype)
    if source.is_floating_point:
        _decided(whole, node)
    if dtype == torch.bool:
        return Whole(0, 1, whole.data)
    bounds = torch.iinfo(dtype)
    if dtype == torch.int64 or bounds.min <= whole.low and whole.high <= bounds.max:
        return whole
    if dtype == torch.int32 and (source.is_floating_point or whole.largest() <= 4 * LARGEST_SIZE):
        return _of_type(dtype, whole.data)
    raise _refused(node, f"{_word(node)} keeps {bounds.bits} bits of an integer that may be {_bound(whole.low)} to "
                   f"{_bound(whole.high)}, so that different ones become equal, and a kernel would keep them all",
                   "use torch.int32 or torch.int64; where it should wrap, write the remainder: ids % 256")


def _decided(whole, node):
    if whole is None or not whole.lost:
        return
    at, dtype, before = whole.lost
    raise _refused(at, f"{_word(at)} makes {_short(dtype)} of an integer that may be {_bound(before.low)} to "
                   f"{_bound(before.high)}; {_short(dtype)} holds whole numbers up to {EXACT[dtype]}, and a comparison or an "
                   f"index in line {place_of(node)[0]} depends on it",
                   "compare integers as integers; where reals are needed, make them float32 of positions")


def _bound(x):
    return str(int(x)) if abs(x) < 2**62 else ("-" if x < 0 else "") + "2^62 and more"


def _word(node):
    return getattr(node.target, "__name__", "it") if isinstance(node.meta.get("val"), torch.SymFloat) else f"aten.{operator_name(node)}"


def _short(dtype):
    return str(dtype).removeprefix("torch.")


def _refused(node, message, hint):
    line, column = place_of(node)
    return Problem("spec.conversion", message, line, column, hint)
