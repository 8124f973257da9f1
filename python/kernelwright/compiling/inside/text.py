"""Operators of an exported graph as lines of plain PyTorch.

The part of a user's graph that a kernel holds, and what stands around it, both become Python text, one line an
operator, because everything else in this package takes functions: the capture, the fingerprint, torch.compile, and a
person who asks what runs where. A line says what the user's own said, `softmax = scores.softmax(-1)`, as a method where
tensors have one of that name, and else by the operator's full name, `torch.ops.aten.slice.Tensor(...)`: both take an
operator's arguments in its order.

Devices of the example are written as the device of an argument, so that what was traced on a CPU runs on a GPU.
"""

import keyword
import math
import operator

import torch
from torch.utils._sympy import functions as sympy_functions

from ...errors import SpecError

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "matmul": "@", "eq": "==", "ne": "!=", "lt": "<", "le": "<=",
          "gt": ">", "ge": ">=", "bitwise_and": "&", "bitwise_or": "|", "__and__": "&", "__or__": "|"}
_OF_SIZES = {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.mod: "%", operator.truediv: "/",
             operator.pow: "**", operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">",
             operator.ge: ">="}
_FUNCTIONAL = {"scaled_dot_product_attention", "linear", "silu", "gelu", "softplus", "elu", "leaky_relu"}
# Methods that do not take the operator's arguments in its order, or are none of its.
_NO_METHODS = {"to", "slice", "pad", "where", "slice_scatter", "new_zeros", "new_ones", "new_full", "new_empty", "type_as", "norm",
               "split_with_sizes", "std", "var", "unflatten", "_to_copy", "max", "min", "any", "all", "index", "gather"}


def operator_name(node):
    """softmax, of torch.ops.aten.softmax.int; the whole name of what is no operator of ATen's."""
    text = str(node.target)
    if isinstance(node.target, torch._ops.OpOverload):
        return text.split(".")[1] if text.startswith("aten.") else text
    return getattr(node.target, "__name__", text)


def is_size(node):
    """Whether a node's value is a number that is known when sizes are."""
    return isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool))


class Writer:
    """Writes nodes as statements. `names`: of nodes that have one; `device`: the example's, and `device_text` what is written for
    it; `size_text(node)`: an expression for a size, or None where the node has a name."""

    def __init__(self, names, device=None, device_text=None, size_text=None, bind=None):
        self.names, self.device, self.device_text = names, device, device_text
        self.size_text, self.bind = size_text, bind

    def statement(self, node):
        """`name = expression`, and the name is known from here on."""
        name = fresh(node.name if self.bind else _short_name(node), self.names.values())
        expression = self.expression(node)
        self.names[node] = name
        return f"{name} = {expression}"

    def value(self, value):
        """An argument of an operator, as text."""
        if isinstance(value, torch.fx.Node):
            if self.size_text is not None and is_size(value):
                return self.size_text(value)
            return self.names[value]
        if isinstance(value, (list, tuple)):
            inside = ", ".join(map(self.value, value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
        if isinstance(value, float) and not math.isfinite(value):
            return {math.inf: "torch.inf", -math.inf: "-torch.inf"}.get(value, "torch.nan")
        if isinstance(value, torch.device):
            # A GPU without a number and one with it are one device here.
            return self.device_text if self.device is not None and value.type == self.device.type else f"torch.device({str(value)!r})"
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, slice):
            return f"slice({self.value(value.start)}, {self.value(value.stop)}, {self.value(value.step)})"
        if value is None or isinstance(value, (bool, int, float, str)):
            return repr(value)
        if self.bind is not None:
            return self.bind(value)
        raise SpecError(f"an operator's argument is of the type {type(value).__name__}", code="spec.operator")

    def expression(self, node):
        if node.op == "get_attr":
            return self.bind(getattr(node.graph.owning_module, node.target))
        name = operator_name(node)
        if node.target is operator.getitem:
            return f"{self.value(node.args[0])}[{self.value(node.args[1])}]"
        if node.target in _OF_SIZES and len(node.args) == 2:
            return f"{self.value(node.args[0])} {_OF_SIZES[node.target]} {self.value(node.args[1])}"
        if name in ("sym_size",) and len(node.args) == 2:
            return f"{self.value(node.args[0])}.shape[{node.args[1]}]"
        if not isinstance(node.target, torch._ops.OpOverload):
            return self._called(self.bind(node.target) if self.bind else _refuse(node), node.args, node.kwargs)
        if not str(node.target).startswith("aten."):
            return self._called(f"torch.ops.{node.target}", node.args, node.kwargs)
        return self._operator(node, name)

    def _operator(self, node, name):
        args, kwargs = node.args, _useful(node)
        if name in _INFIX and len(args) == 2 and not kwargs and isinstance(args[0], torch.fx.Node):
            return f"{self.value(args[0])} {_INFIX[name]} {self.value(args[1])}"
        if name == "slice" and not kwargs and len(args) <= 4 and isinstance(args[1] if len(args) > 1 else 0, int):
            return self._slice(*args)
        if name == "to" and len(args) == 2 and isinstance(args[1], torch.dtype) and not kwargs:
            return f"{self.value(args[0])}.to({args[1]})"
        if name in _FUNCTIONAL:
            return self._called(f"torch.nn.functional.{name}", args, kwargs)
        first = node.target._schema.arguments[0].name if node.target._schema.arguments else ""
        if first == "self" and name not in _NO_METHODS and callable(getattr(torch.Tensor, name, None)) and not name.startswith("_"):
            return self._called(f"{self.value(args[0])}.{name}", args[1:], kwargs)
        if name == "arange" and not {"layout", "out"} & kwargs.keys():
            return self._called("torch.arange", args, kwargs)
        return self._called(f"torch.ops.{node.target}", args, kwargs)

    def _slice(self, tensor, dim=0, start=None, end=None):
        """x[:, :, :n]"""
        rank = tensor.meta["val"].dim()
        dim %= rank
        end = None if isinstance(end, int) and end >= 2**62 else end
        start = None if isinstance(start, int) and start == 0 else start
        from_, to = ("" if x is None else self.value(x) for x in (start, end))
        return f"{self.value(tensor)}[{': , '.replace(' ,', ',') * dim}{from_}:{to}]"

    def _called(self, function, args, kwargs):
        given = [*map(self.value, args), *(f"{key}={self.value(value)}" for key, value in kwargs.items())]
        return f"{function}({', '.join(given)})"


def _useful(node):
    """Keywords without those that say nothing: no pinned memory, the layout that all tensors have."""
    return {key: value for key, value in node.kwargs.items()
            if not (key == "pin_memory" and not value or key == "layout" and value in (None, torch.strided))
            and not (value is None and key in ("dtype", "device", "memory_format"))}


def _refuse(node):
    raise SpecError(f"{operator_name(node)} is no operator of ATen's", code="spec.operator")


def _short_name(node):
    """A name that is the same for the same operator wherever it stands in a graph."""
    name = "item" if node.target is operator.getitem else operator_name(node).split(".")[-1].strip("_")
    return name if name.isidentifier() else "value"


def fresh(name, taken):
    """An identifier like `name` that is not among those that are taken."""
    name = "".join(c if c.isalnum() else "_" for c in name)
    name = name if name.isidentifier() and not keyword.iskeyword(name) else f"value_{name}"
    taken, n, tried = set(taken) | {"torch"}, 1, name
    while tried in taken:
        n += 1
        tried = f"{name}_{n}"
    return tried


# ---- sizes


_FUNCTIONS = {"Max": "max", "Min": "min"}
_SIGNS = {"Add": " + ", "Mul": " * ", "FloorDiv": " // ", "CleanDiv": " // ", "PythonMod": " % ", "Mod": " % ", "And": " and ",
          "Or": " or ", "Equality": " == ", "Unequality": " != ", "StrictLessThan": " < ", "LessThan": " <= ",
          "StrictGreaterThan": " > ", "GreaterThan": " >= ", "Pow": " ** ", "PowByNatural": " ** ", "IntTrueDiv": " / ",
          "FloatTrueDiv": " / "}


def expression_of_sizes(expression, known):
    """Python text of an expression of sizes; None where it has a symbol that `known` has no text for, or what is not written here."""
    if expression in known:
        return known[expression]
    if getattr(expression, "is_Integer", False):
        return str(int(expression))
    if getattr(expression, "is_number", False) and expression.is_Float:
        return repr(float(expression))
    if expression in (True, False) or getattr(expression, "is_Boolean", False) and not expression.args:
        return str(bool(expression))
    kind = type(expression).__name__
    parts = [expression_of_sizes(part, known) for part in getattr(expression, "args", ())]
    if not parts or None in parts:
        return None
    if kind == "Not":
        return f"(not {parts[0]})"
    if kind in _FUNCTIONS:
        return f"{_FUNCTIONS[kind]}({', '.join(parts)})"
    if isinstance(expression, sympy_functions.ToFloat):
        return f"float({parts[0]})"
    return f"({_SIGNS[kind].join(parts)})" if kind in _SIGNS else None
