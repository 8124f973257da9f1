"""A region as a function of plain PyTorch, which is captured and compiled like one that the user wrote.

    def causal_attention(q, k, v, bias):
        matmul = q @ k.transpose(-2, -1)  # gpt.py:31
        ...
        return transpose

Its text depends on the operators alone and not on where they stand: layers that are alike have one text, one fingerprint and one
kernel. Sizes are those of its arguments: what the whole computes of the hidden states' length is `q.shape[2]` here. The text is kept
where Python looks for the lines of files, so a traceback shows it; `lines` leads from each of its lines back to the user's.

With a type (`dtype=`), arguments of fp32 are cast to it before they come in, and so is what comes to a product: as autocast does.
"""

import builtins
import dataclasses
import hashlib
import linecache
import types

import torch

from ...errors import SpecError
from . import cores
from .places import short
from .text import Writer, expression_of_sizes, fresh, is_size, operator_name


@dataclasses.dataclass
class RegionFunction:
    """`values`: example arguments; `names`: of the arguments, in the order of `inputs`, which are nodes; `lines`: {line of the text:
    node}; `copied`: which inputs a kernel cannot read as they lie; `cast`: which are cast."""
    function: types.FunctionType
    text: str
    inputs: tuple
    names: tuple
    values: tuple
    lines: dict
    copied: frozenset
    cast: frozenset
    borders: dict  # {node: (what makes it the kernel's, what makes that the user's)}, as text: ".mT"


class UnknownSize(SpecError):
    """A region reads a size that no argument of it tells. `node`: the operator that does."""

    node = None


def make(region, name, examples, device, place, dtype=None):
    """The function of a region. `examples`: {node: value}; `place(node)`: (file, line) in the user's text, or None.

    Raises SpecError where a size of the region is one that its arguments do not tell."""
    roles = _roles(region)
    inputs = tuple(sorted(region.inputs, key=lambda n: (roles.get(n, 9), region.inputs.index(n))))
    names = {}
    for node in inputs:
        names[node] = fresh(_name_of(node, roles), names.values())
    arguments = tuple(names[n] for n in inputs)
    borders = {n: border for n in [*(n for n in inputs if n in roles), *region.outputs] if (border := _border(n))}
    body = []
    for node, argument in zip(inputs, arguments):
        if node in borders:
            names[node] = fresh(f"{argument}_as_it_was", names.values())
            body.append(f"{names[node]} = {argument}{borders[node][1]}")
    known = _known_sizes(inputs, names)

    def size_text(node):
        value = node.meta["val"]
        text = expression_of_sizes(value.node.expr, known) if hasattr(value, "node") else repr(value)
        if text is None:
            raise UnknownSize(f"it reads a size, {value}, that none of the tensors that come into it has", *(place(node) or (None, None)), 1,
                              "inside.size")
        return text

    writer = Writer(names, device, f"{names[inputs[0]]}.device" if inputs else "'cpu'", size_text)
    cast = frozenset(n for n in inputs if dtype is not None and _is_cast(n, examples))
    types_ = _Types(dtype, examples, cast)
    lines = {}
    for node in region.nodes:
        if is_size(node):
            continue
        for prefix in types_.casts_before(node, writer):
            body.append(prefix)
            lines[len(body) + 1] = node
        at = place(node)
        try:
            body.append(writer.statement(node))
        except UnknownSize as error:
            error.node = node
            raise
        lines[len(body) + 1] = node
        types_.note(node)
        body[-1] += f"  # {short(at)}" if at else ""
    returned = ", ".join(writer.names[n] + borders.get(n, ("", ""))[0] for n in region.outputs)
    head = f"def {name}({', '.join(arguments)}):"
    text = "\n".join([head, *(f"    {line}" for line in body), f"    return {returned}", ""])
    values, copied = [], set()
    for node in inputs:
        value = examples[node].to(dtype) if node in cast else examples[node]
        value = eval(f"value{borders[node][0]}", {"value": value}) if node in borders else value
        if _must_be_copied(value):
            value = value.contiguous()
            copied.add(node)
        values.append(_dense(value))
    return RegionFunction(_function(name, text), text, inputs, arguments, tuple(values), lines, frozenset(copied), cast,
                          borders)


def meaning(text):
    """A function's text without the places in it: what is equal where two regions compute the same."""
    return "\n".join(line.split("  #")[0] for line in text.splitlines())


def _function(name, text):
    file = f"<kernelwright {name} {hashlib.sha256(text.encode()).hexdigest()[:8]}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space = {"torch": torch, "__builtins__": builtins}
    exec(compile(text, file, "exec"), space)
    return space[name]


# ---- arguments


def _border(node):
    """How rows come in and go out that have five dimensions, [B, G, R, S, D] or [B, S, G, R, D], of which two are one of heads to a kernel;
    or whose last is their length, [B, H, D, S]. None of others."""
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor) or value.dim() < 3:
        return None
    plain = [isinstance(size, int) for size in value.shape]
    if plain[-2] and not plain[-1] and value.dim() <= 4:
        return ".mT", ".mT"
    at = next((d for d in (1, 2) if plain[d] and plain[d + 1]), None) if value.dim() == 5 else None
    return at and (f".flatten({at}, {at + 1})", f".unflatten({at}, {tuple(value.shape[at:at + 2])})")


def _roles(region):
    """{input: 0 of q, 1 of k, 2 of v}, of those whose rows come to the products."""
    core, roles = region.core, {}
    first = core.first[0]
    sides = cores.factors(first)
    operands = [sides[0], sides[1], cores.factors(core.last)[2] if core.last is first else
                next((x for x in cores.factors(core.last) if x not in core.nodes), None)]
    for role, node in enumerate(operands):
        if isinstance(node, torch.fx.Node):
            found = _source(node, region)
            if found is not None:
                roles.setdefault(found, role)
    return roles


def _source(node, region):
    """The input of a region that a value is mostly made of: along the first largest tensor."""
    while node not in region.inputs:
        tensors = [n for n in node.all_input_nodes if not is_size(n) and isinstance(n.meta.get("val"), (torch.Tensor, list, tuple))]
        if not tensors or node not in region.nodes:
            return None
        node = max(tensors, key=_rank)
    return node


def _rank(node):
    value = node.meta["val"]
    return (value if isinstance(value, torch.Tensor) else value[0]).dim()


def _name_of(node, roles):
    if node in roles:
        return "qkv"[roles[node]]
    value = node.meta["val"]
    if value.dtype == torch.bool:
        return "mask"
    return "indices" if not value.is_floating_point() else "bias" if value.dim() >= 3 else "table"


def _known_sizes(inputs, names):
    """{expression: text} of what the arguments' shapes tell, plain symbols before others."""
    known = {}
    for plain in (True, False):
        for node in inputs:
            for d, size in enumerate(node.meta["val"].shape):
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol == plain and not size.node.expr.is_number:
                    known.setdefault(size.node.expr, f"{names[node]}.shape[{d}]")
    return known


def _must_be_copied(value):
    """Whether a kernel cannot copy an operand's rows where they lie: 16 bytes at a time, the last dimension contiguous."""
    if not value.is_floating_point() or value.dim() < 3:
        return False
    unit = max(1, 16 // value.element_size())
    strides = value.stride()
    return value.shape[-1] > 1 and strides[-1] != 1 or any(
        size > 1 and (stride <= 0 or stride % unit) for size, stride in zip(value.shape[:-1], strides[:-1])) and value.shape[-1] >= unit


def _dense(value):
    """The same with its dimensions in the same order in memory, and no gaps: a slice of qkv has strides that are no sizes' products,
    of which a trace would ask more than a kernel does."""
    order = sorted(range(value.dim()), key=lambda d: -value.stride(d))
    back = [order.index(d) for d in range(value.dim())]
    return value.detach().permute(order).contiguous().permute(back)


# ---- types


def _is_cast(node, examples):
    return examples[node].dtype == torch.float32 and examples[node].dim() >= 3


class _Types:
    """Which type each value has where some arguments have another one than in the user's call, and so what must be cast where."""

    def __init__(self, dtype, examples, cast):
        self.dtype, self.examples = dtype, examples
        self.now = dict.fromkeys(cast, dtype)

    def _of(self, node):
        value = self.examples.get(node)
        return self.now.get(node, value.dtype if isinstance(value, torch.Tensor) else None)

    def casts_before(self, node, writer):
        """Statements that cast what comes to a product; the names of the writer lead to what is cast from then on."""
        name = operator_name(node)
        if self.dtype is None or name not in cores.PRODUCTS and name != cores.FUSED:
            return []
        found = []
        for side in dict.fromkeys(cores.factors(node)):
            if isinstance(side, torch.fx.Node) and self._of(side) not in (self.dtype, None) and self._of(side).is_floating_point:
                before = writer.names[side]
                writer.names[side] = fresh(f"{before}_cast", writer.names.values())
                found.append(f"{writer.names[side]} = {before}.to({self.dtype})")
                self.now[side] = self.dtype
        return found

    def note(self, node):
        """The type that an operator gives now."""
        value = node.meta.get("val")
        if self.dtype is None or not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return
        asked = [a for a in [*node.args, *node.kwargs.values()] if isinstance(a, torch.dtype)]
        given = [n for n in node.all_input_nodes if not is_size(n) and self._of(n) is not None and self._of(n).is_floating_point]
        if asked:
            self.now[node] = asked[0]
        elif given:
            of = [n for n in given if isinstance(n.meta["val"], torch.Tensor) and n.meta["val"].dim()] or given
            dtype = self._of(of[0])
            for other in of[1:]:
                if operator_name(node) not in ("type_as", "expand_as", "view_as") and operator_name(node) not in cores.PRODUCTS:
                    dtype = torch.promote_types(dtype, self._of(other))
            self.now[node] = dtype if operator_name(node) not in ("type_as",) else self._of(given[-1])
