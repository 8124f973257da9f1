"""Golden cases beyond the constants of a function: on both sides of a window of 1024, a chunk of 512, a step at 8192.

The other golden cases go up to 300, and a constant beyond them would be believed, not seen. So the graph is
searched for the numbers that positions, sizes and integer arguments are combined with, and for each beyond
NEAR there are cases of one more than it queries with few keys, and the other way round. Of a case the rows at
both ends and next to each constant are kept, and the form is held against these (`far` of goldens.json); the function
itself is held against its trace in all of them. No program is run on them.

What is dear is the long operand, of all heads. Its rows are one number each (`constant`), since what shows a mask
or a bias is which of the other side's rows are averaged; the values are drawn.
"""

import math

import torch

from .graph import operator_name, place_of

NEAR = 255  # the other cases are on both sides of what is no larger
FARTHEST = 16384
FEW = 9  # rows of the short side
LARGEST = 2**26  # elements of the long operand
LARGEST_SQUARE = 2**25  # scores, where there are as many queries as keys
DRAWN = 2**22  # elements; an operand of queries that has more is one number
MOST = 4  # constants; beyond them the greatest
COMBINED = {"lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "rsub", "mul", "div", "floor_divide", "remainder", "minimum",
            "maximum", "min", "max", "clamp", "clamp_min", "clamp_max", "clip", "fmod", "true_divide",
            "__rshift__", "__lshift__", "bitwise_right_shift", "bitwise_left_shift"}


def constants(traced):
    """{number: (line, whether it stands there)} of the constants that positions meet, products with a divisor among them (i // 64 < 32)."""
    known, lines, divisors = set(), {}, set()
    for node in traced.program.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            if isinstance(value, torch.Tensor) and not value.is_floating_point():
                known.add(node)
        elif isinstance(value, torch.SymInt):
            known.add(node)
            for atom in value.node.expr.atoms():
                if atom.is_Integer:
                    _note(lines, int(atom), node)
        elif node.op == "call_function" and isinstance(value, torch.Tensor):
            _follow(node, known, lines, divisors)
    found = {}
    for n, line in lines.items():
        for factor in {1, *divisors}:
            if NEAR < n * factor and (factor == 1 or n <= 4096):
                found[n * factor] = (line, factor == 1 or found.get(n * factor, (0, False))[1])
    return found


def _follow(node, known, lines, divisors):
    name = operator_name(node).rstrip("_")
    tensors = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor)]
    if not all(n in known for n in tensors):
        return
    known.add(node)
    if name in COMBINED:
        for x in node.args[1:] if not tensors or node.args[0] is tensors[0] else node.args[:1]:
            n = _whole(x)
            if n is not None:
                _note(lines, n, node)
                if name in ("floor_divide", "div", "true_divide") and 1 < n <= 4096:
                    divisors.add(n)
    if name in ("tril", "triu"):
        _note(lines, _whole(node.args[1]) or 0 if len(node.args) > 1 else 0, node)


def _whole(x):
    finite = isinstance(x, (int, float)) and not isinstance(x, bool) and math.isfinite(x)
    return abs(round(x)) if finite else None


def _note(lines, n, node):
    if abs(n) > 1:
        lines.setdefault(abs(n), place_of(node)[0])


def cases(traced, square=False):
    """([(B, M, N, rows)], notes on constants that are farther than any case). square: M and N are one size."""
    if traced.product or traced.rows:
        return [], []
    found = constants(traced)
    operands = [v for v in traced.values if isinstance(v, torch.Tensor) and v.is_floating_point() and v.dim() >= 3]
    heads = max((min(v.shape[1], v.shape[2]) for v in operands if v.dim() == 4), default=1)
    width = heads * max((v.shape[-1] for v in operands), default=1)
    most = min(FARTHEST, LARGEST // width)
    if square:
        most = min(most, math.isqrt(LARGEST_SQUARE // heads))
    near = sorted(n for n in found if n + 2 <= most)[-MOST:]
    notes = [(f"positions meet {n} here, and PyTorch was looked at with sizes up to {max(near, default=300)} only", line)
             for n, (line, plain) in sorted(found.items()) if n + 2 > most and plain and n < 2**24]
    out = []
    for n in near:
        rows = {r for c in near for r in (c - 1, c, c + 1) if r < n + 2} | {0, 1, n // 2, n + 1}
        out.append((1, n + 2, FEW, sorted(rows)))
        if not square and (n + 2) * width <= DRAWN:
            out.append((1, FEW, n + 2, list(range(FEW))))
    return out, notes
