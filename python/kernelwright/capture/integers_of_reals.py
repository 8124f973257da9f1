"""Integers that are made of reals of positions: `((i - j) * 0.0048).int()`, `torch.floor(torch.log2(d))`, `i // 0.3`.

PyTorch computes such a real in fp32, the form in fp64, a kernel as its author likes. Where the real is nearly an integer the
roundings decide which one comes out: 625 * 0.0048 is 3.0000002 in fp32 and 2.9999999999999996 in fp64, so that a mask keeps another key.
Cases show it only where they happen to be that far. So where the real depends on one integer of positions (a distance, a place, or
a function of it), the part of the graph between the two is run for every value of that integer, up to 2^20, in the types as written and in
fp64, and what comes of it (behind a clamp, or a choice: where the integer leaves what depends on that integer alone) must be equal.
T5's buckets are. Where it depends on several (`i * 0.3 - j * 0.3`), or on integers of the data, not all can be tried, and it is refused.
A quotient of two integers below 2^24 is the exception: in fp32 it is an integer, or passes one, where it does over the rationals.
Of what is no number x86 makes the least integer, a GPU 0: in fp64 here it is 0, so that what depends on it differs.

What is hard is to say that two tensors have the same integer at an element: `i[:, None]` and `i[None, :]` have not. An integer is known by
the node that it comes from and the views since; whatever else makes an integer of several (`i - j`) is one of its own.
"""

import math

import torch

from . import exactness
from .diagnostic import Problem
from .graph import operator_name, place_of

FARTHEST = 2**20  # the integers of positions that are tried
PLAIN = 2**24  # integers whose quotients are exact enough
PIECE = 2**18  # so many at a time
FILLED = {"ones": 1, "ones_like": 1, "new_ones": 1, "zeros": 0, "zeros_like": 0, "new_zeros": 0}
OF_A_NUMBER = {"scalar_tensor": 0, "full": 1, "full_like": 1, "new_full": 2}  # where the number stands
SAME_ELEMENT = {"expand", "expand_as", "broadcast_to", "contiguous", "clone", "detach", "alias", "lift_fresh_copy"}
BY_ELEMENT = exactness.COMPARISONS | exactness.MADE_WHOLE | {
    "add", "sub", "rsub", "mul", "div", "true_divide", "fmod", "pow", "square", "minimum", "maximum", "clamp", "clip", "clamp_min", "clamp_max",
    "where", "masked_fill", "neg", "abs", "sign", "relu", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal",
    "tanh", "sigmoid", "sin", "cos", "erf", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_not", "__and__", "__or__", "__xor__", "bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__"}
KEEPS_WHOLE = {"where", "masked_fill", "minimum", "maximum", "min", "max", "clamp", "clip", "clamp_min", "clamp_max", "neg", "abs", "relu"}
QUOTIENTS = {"div", "true_divide"}
HINT = "compute it of integers, as `3 * d // 10`, or compute the integers beforehand and pass a table of ints: table[i - j]"


def refuse_integers_of_data(traced, known):
    """Raises Problem for the first integer that is made of a real which is computed of floating arguments: `(rate * (i - j)).int()`.
    Of one that is read, there is nothing rounded."""
    for node in traced.program.graph.nodes:
        value = exactness._first(node)
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or value.dtype == torch.bool or \
                all(known.get(n) is not None for n in node.all_input_nodes):
            continue
        name = exactness._name(node)
        made = name in exactness.CONVERSIONS and not value.is_floating_point() or name in exactness.MADE_WHOLE or node.kwargs.get("rounding_mode")
        tensors = [n for n in node.all_input_nodes if isinstance(exactness._first(n), torch.Tensor)]
        by = made and (next(filter(None, (_computed(n, known) for n in tensors)), None) or (node if len(tensors) > 1 and
                       name not in exactness.CONVERSIONS and value.is_floating_point() else None))
        if by:
            raise _refused(node, by, "it is made of data, and not all can be tried")


def _computed(node, known):
    """The operation on data that may round a real, on the way to it."""
    waiting, seen = [node], set()
    while waiting:
        at = waiting.pop()
        value = exactness._first(at)
        if at in seen or at.op != "call_function" or not isinstance(value, torch.Tensor) or not value.is_floating_point():
            continue
        seen.add(at)
        if known.get(at) is None and exactness._name(at) not in exactness.EXACT_OF_REALS and not _scales(at):
            return at
        waiting += at.all_input_nodes
    return None


def _scales(node):
    """By a power of two, which rounds nothing."""
    by = node.args[1] if len(node.args) > 1 else None
    return exactness._name(node) in ("mul", *QUOTIENTS) and isinstance(by, (int, float)) and exactness._is_power_of_two(by)


class IntegersOfReals:
    """Of one traced function. known: what exactness.py knows of each node so far. constants: the tensors of _constants()."""

    def __init__(self, known, constants):
        self.known, self.constants, self.found = known, constants, {}

    def refuse(self, node, by):
        """Raises Problem where `node` makes an integer of a real that `by` rounds, and another one than fp64 would."""
        if self._is_plain_quotient(node):
            return
        made_of = node.args[:1] if exactness._name(node) in exactness.CONVERSIONS else node.all_input_nodes
        of = frozenset().union(*map(self.variables, made_of))
        if len(of) > 1:
            raise _refused(node, by, "it is made of several integers of positions or sizes, and not all of them can be tried")
        if not of:
            return
        variable = next(iter(of))
        pieces = self._values(variable[0])
        if pieces is None:
            raise _refused(node, by, "it is made of data, or of what is no integer of positions, and not all can be tried")
        at = self._leaving(node, variable)
        for piece in pieces:
            own, exact = (_Run(self, variable, piece, wide).of([*at, node]) for wide in (False, True))
            for n, left in enumerate(at):
                apart = _differ(left, own[n].double(), exact[n].double())
                if apart.any():
                    k = int(apart.expand(piece.shape).nonzero()[0])
                    a, b = (float(x[-1].double().expand(piece.shape)[k]) for x in (own, exact))
                    raise _refused(node, by, f"of {piece[k].item()} PyTorch makes {a:.8g} and fp64 {b:.8g}")

    # ---- which integers a node is made of

    def variables(self, node):
        """{(node, views since)}: the integers that an element of a node is a function of."""
        if not isinstance(node, torch.fx.Node):
            return frozenset()
        if node not in self.found:
            self.found[node] = self._variables(node)
        return self.found[node]

    def _variables(self, node):
        value = exactness._first(node)
        own = frozenset([(node, ())])
        if not isinstance(value, torch.Tensor) or node.op != "call_function":
            return frozenset() if _is_number(self.constants.get(node.name)) else own
        name = exactness._name(node)
        if name in FILLED or name in OF_A_NUMBER:
            return self.variables(self._filled(node, name))
        if name in SAME_ELEMENT or name in exactness.CONVERSIONS:
            return self.variables(node.args[0])
        if name in exactness.SAME_VALUES:
            return frozenset((of, (*views, (name, str(node.args[1:]), str(node.kwargs)))) for of, views in self.variables(node.args[0]))
        if name in BY_ELEMENT or name in ("min", "max") and len(node.all_input_nodes) == 2:
            of = frozenset().union(*(self.variables(n) for n in node.all_input_nodes))
            if len(of) < 2 or value.is_floating_point():
                return of
        return own

    def _filled(self, node, name):
        return FILLED[name] if name in FILLED else node.args[OF_A_NUMBER[name]]

    def _values(self, node):
        """Every value of an integer in pieces, those near 0 first; None for what is no integer, or may be more than can be tried."""
        value, constant = exactness._first(node), self.constants.get(node.name)
        if constant is not None:
            return [constant.flatten().unique()]
        whole = not isinstance(value, torch.Tensor) or not value.is_floating_point() or exactness._name(node) == "arange"
        range = self.known.get(node)
        if range is None or not whole or range.rounded or isinstance(value, torch.SymFloat) or range.low != int(range.low):
            return None
        farthest = FARTHEST * min(self._factor(node), PLAIN // FARTHEST)
        low, high = int(max(range.low, -farthest)), int(min(range.high, farthest))
        return None if range.data and (low, high) != (range.low, range.high) else _from_0_on(low, high)

    def _factor(self, node):
        """What positions are multiplied by at most in an integer: 5 in 5 * i - 5 * j, whose values lie that far."""
        if not isinstance(node, torch.fx.Node) or node.op != "call_function":
            return 1
        inputs = max([self._factor(n) for n in node.all_input_nodes], default=1)
        if exactness._name(node) not in ("mul", "bitwise_left_shift", "__lshift__", "pow", "square") and "alpha" not in node.kwargs:
            return inputs
        numbers = [abs(x) for x in [*node.args, *node.kwargs.values()] if isinstance(x, (int, float))]
        return inputs * math.ceil(numbers[0]) if exactness._name(node) == "mul" and numbers and numbers[0] >= 1 else PLAIN

    # ---- quotients

    def _is_plain_quotient(self, node):
        """floor(a / b), ceil(a / b) or int(a / b) of integers: nearer to an integer than they may be, a quotient would be one."""
        if exactness._name(node) not in ("floor", "ceil", "trunc", *exactness.CONVERSIONS):
            return False
        of = node.args[0]
        while isinstance(of, torch.fx.Node) and operator_name(of) in SAME_ELEMENT:
            of = of.args[0]
        return operator_name(of).rstrip("_") in QUOTIENTS and not of.kwargs.get("rounding_mode") and all(map(self._is_plain, of.args[:2])) and \
            exactness._first(of).dtype in (torch.float32, torch.float64) and not self._may_be_zero(of.args[1])

    def _may_be_zero(self, x):
        """Of a divisor that is made of positions; one of the data is positive, which launches are held to."""
        range = self.known.get(x) if isinstance(x, torch.fx.Node) and isinstance(exactness._first(x), torch.Tensor) else None
        return range is not None and not range.data and range.low <= 0 <= range.high

    def _is_plain(self, x):
        if isinstance(x, (int, float)):
            return x == int(x) and 0 < abs(x) < PLAIN
        while operator_name(x).rstrip("_") in exactness.CONVERSIONS and exactness._first(x).dtype in (torch.float32, torch.float64):
            x = x.args[0]
        value, range = exactness._first(x), self.known.get(x)
        integer = not isinstance(value, torch.Tensor) and not isinstance(value, torch.SymFloat) or \
            isinstance(value, torch.Tensor) and not value.is_floating_point()
        return integer and range is not None and (range.largest() < PLAIN or not range.data and self._factor(x) == 1)

    # ---- what is compared

    def _leaving(self, node, variable):
        """The last nodes that are whole numbers of that one integer, from `node` on."""
        within = {node}
        for n in node.graph.nodes:
            if within & set(n.all_input_nodes) and n.op == "call_function" and self.variables(n) == {variable} and self._is_whole(n, within):
                within.add(n)
        return [n for n in node.graph.nodes if n in within and (not n.users or any(map(_takes_numbers, set(n.users) - within)))]

    def _is_whole(self, node, within):
        value, name = exactness._first(node), exactness._name(node)
        if name not in BY_ELEMENT | SAME_ELEMENT | exactness.CONVERSIONS | {"min", "max"} or not isinstance(value, torch.Tensor):
            return False
        if name in exactness.COMPARISONS or not value.is_floating_point():
            return all(n in within or not exactness._first(n).is_floating_point() for n in node.all_input_nodes
                       if isinstance(exactness._first(n), torch.Tensor))
        return name in KEEPS_WHOLE | SAME_ELEMENT | exactness.CONVERSIONS


def _from_0_on(low, high):
    for start in range(0, max(high, -low) + 1, PIECE):
        up = torch.arange(start, start + PIECE)
        piece = torch.cat([up, -up[up > 0]])
        yield piece[(piece >= low) & (piece <= high)]


def _takes_numbers(user):
    """Of a node: not those that take another one's shape alone."""
    name = exactness._name(user)
    return name not in FILLED and name not in OF_A_NUMBER and (user.op == "output" or isinstance(exactness._first(user), torch.Tensor))


def _is_number(constant):
    """A tensor of one number, or of the same everywhere."""
    return constant is not None and constant.numel() > 0 and bool((constant == constant.flatten()[0]).all())


def _differ(node, own, exact):
    """Of a remainder: by more than a rounding, a part of what it is the remainder by."""
    if exactness._name(node) in ("remainder", "fmod") and isinstance(node.args[1], (int, float)):
        return ~((own - exact).abs() <= abs(node.args[1]) / 4)
    return ~((own == exact) | (own.isnan() & exact.isnan()))


class _Run:
    """A part of the graph, for many values of the integer that it depends on."""

    def __init__(self, of, variable, values, wide):
        self.of_reals, self.variable, self.values, self.wide, self.made = of, variable, values, wide, {}

    def of(self, nodes):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64 if self.wide else before)
        try:
            with torch.no_grad():
                return [self._of(n) for n in nodes]
        finally:
            torch.set_default_dtype(before)

    def _of(self, x):
        if isinstance(x, torch.dtype):
            return torch.float64 if self.wide and x.is_floating_point else x
        if not isinstance(x, torch.fx.Node):
            return x
        if x not in self.made:
            self.made[x] = self._made(x)
        return self.made[x]

    def _made(self, node):
        value, constant, name = exactness._first(node), self.of_reals.constants.get(node.name), exactness._name(node)
        if node is self.variable[0]:
            return self._typed(self.values, value)
        if constant is not None:
            return self._typed(constant.flatten()[0].reshape([1] * min(constant.dim(), 1)), value)
        if name in FILLED or name in OF_A_NUMBER:
            filled = self._of(self.of_reals._filled(node, name))
            filled = filled if isinstance(filled, torch.Tensor) else torch.full([1] * min(value.dim(), 1), filled, dtype=torch.float64)
            return self._typed(filled, value)
        if name in exactness.CONVERSIONS:
            of = self._of(node.args[0])
            if self.wide and of.is_floating_point() and not value.is_floating_point():
                of = of.masked_fill(of.isnan(), 0)
            return self._typed(of, value)
        if name in exactness.SAME_VALUES:  # whose element is another one's
            return self._of(node.args[0])
        args, kwargs = torch.fx.node.map_aggregate(node.args, self._of), torch.fx.node.map_aggregate(node.kwargs, self._of)
        return node.target(*args, **kwargs)

    def _typed(self, x, value):
        dtype = value.dtype if isinstance(value, torch.Tensor) else x.dtype
        return x.to(torch.float64 if self.wide and dtype.is_floating_point else dtype)


def _refused(node, by, why):
    line, column = place_of(node)
    made = {"remainder": "a remainder", "sign": "a sign"}.get(exactness._name(node), "an integer")
    where = "here" if by is node else f"here, and {exactness._word(by)} in line {place_of(by)[0]} rounds it"
    return Problem("spec.rounding", f"{made} is made of a real {where}: {why}; which one it is depends on how the real was rounded",
                   line, column, HINT)
