"""What is decided by numbers of 16 bits: `gate > 0.1`, `(a + b) > 1.0` with gates, a and b in bf16.

A form, and a kernel, compute with reals as exact as they can; that PyTorch rounds to 16 bits on the way is an error of the
function's own, which a kernel need not repeat. In a mask or an index it is another decision: bf16(1 + 0.002) is 1, and not
above it. And a Python number is compared as it is on a GPU, and rounded to the tensor's type on a CPU. Both are refused at the
operator's own line. What is made of queries and keys is no matter of this: scores are continuous, and rounded in every kernel;
of a product that is no attention's it is, but for its sign.

Nor is the error of a rounding a function: `y - y.to(torch.bfloat16)` would be nothing. Numbers of bf16 leave fp16's range, and those of fp16
have more digits than bf16: one of the two is a function's type, and nothing is converted to the other. FP8 is a type to read. And who rounds an fp32
argument to 16 bits and back means it.
"""

import torch

from .exactness import COMPARISONS, CONVERSIONS, MADE_WHOLE, SAME_VALUES, _refused, _short
from .graph import operator_name, place_of

COARSE = (torch.bfloat16, torch.float16, torch.float8_e4m3fn)
PRODUCTS = {"matmul", "mm", "bmm", "einsum", "scaled_dot_product_attention", "linear", "baddbmm"}
CHOICES = {"where", "masked_fill", "cat", "stack", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "minimum", "maximum",
           "clamp", "abs", "neg", "relu"}


def refuse_coarse_decisions(traced):
    """Raises Problem for the first comparison or index that depends on how 16 bits round, for what is left of a number
    without its rounding, and for what is rounded to FP8."""
    _refuse_what_is_left(traced.program.graph)
    _refuse_other_type(traced)
    products, rounded = set(), {}  # nodes that a product is in; node -> the operator that rounded
    for node in traced.program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function":
            continue
        name = operator_name(node).rstrip("_")
        if name in PRODUCTS or products & set(node.all_input_nodes):
            if traced.product and name in COMPARISONS:
                _refuse_compared_product(node)
            products.add(node)
            continue
        by = next((rounded[n] for n in node.all_input_nodes if n in rounded), None)
        whole = isinstance(value, torch.Tensor) and not value.is_floating_point()
        if name in COMPARISONS:
            _refuse_number(node)
        if by is not None and (name in COMPARISONS or name in MADE_WHOLE or (name in CONVERSIONS and whole)):
            raise _refused(by, f"{by.target} rounds to {_short(by.meta['val'].dtype)}, and what is decided in line {place_of(node)[0]} "
                           "depends on it; a kernel computes it with more bits",
                           "convert first: a.float() + b.float()")
        if whole or not isinstance(value, torch.Tensor):
            continue
        if by is None and value.dtype in COARSE and name not in SAME_VALUES | CHOICES and not _is_widening(node, name, value.dtype):
            by = node
        if by is not None:
            rounded[node] = by


def _compared(node):
    """The types of 16 bits, or fewer, that a comparison has, and what each is compared with."""
    for x, other in (node.args[:2], node.args[1::-1]):
        value = x.meta.get("val") if isinstance(x, torch.fx.Node) else None
        if isinstance(value, torch.Tensor) and value.dtype in COARSE:
            yield value.dtype, other


def _refuse_compared_product(node):
    for dtype, other in _compared(node):
        if not (isinstance(other, (int, float)) and other == 0):
            raise _refused(node, f"{node.target} compares what PyTorch has rounded to {_short(dtype)}; a kernel has more bits of a "
                           "product", "convert before the product: a.float() @ b.float()")


def _refuse_what_is_left(graph):
    """Sums of a number and of what it was rounded to, on any way."""
    before, behind = {}, {}  # node -> the numbers that it is made of: as they are, and rounded
    for node in graph.nodes:
        value, inputs = node.meta.get("val"), node.all_input_nodes
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            continue
        name = operator_name(node).rstrip("_")
        before[node] = set().union(*(before.get(n, ()) for n in inputs))
        behind[node] = set().union(*(behind.get(n, ()) for n in inputs))
        source = inputs[0].meta.get("val") if name in CONVERSIONS and inputs else None
        if isinstance(source, torch.Tensor) and source.is_floating_point():
            if value.dtype.itemsize == 1 and source.dtype != value.dtype:
                raise _refused(node, f"{node.target} rounds to {_short(value.dtype)}, and a kernel does not",
                               "leave it in 16 bits; FP8 is a type of arguments")
            _refuse_rounded_parameter(node, inputs[0])
            if value.dtype.itemsize < source.dtype.itemsize:
                before[node], behind[node] = before[node] - {inputs[0]}, behind[node] | {inputs[0]}
                continue
        if name in ("add", "sub", "rsub") and len(inputs) > 1:
            for x, y in (inputs[:2], inputs[1::-1]):
                if behind.get(x, set()) & (before.get(y, set()) | {y}):
                    raise _refused(node, f"{node.target} adds what is rounded and the same as it was: what is left is the error of a rounding, "
                                   "which a form does not have", "compute with the number alone")
        before[node] |= {node}


def _refuse_other_type(traced):
    """`v.to(torch.float16)` of v in bf16, at once or by way of float32. Of FP8, integers and positions both types hold the same numbers."""
    for node in traced.program.graph.nodes:
        value, source = node.meta.get("val"), node.args[0] if node.args else None
        if node.op != "call_function" or not _is_floating(source) or not isinstance(value, torch.Tensor) or \
                value.dtype not in (torch.bfloat16, torch.float16) or value.dtype == source.meta["val"].dtype:
            continue
        types = {source.meta["val"].dtype}
        while operator_name(source) in SAME_VALUES | CONVERSIONS and _is_floating(source.args[0]):
            source = source.args[0]
            types.add(source.meta["val"].dtype)
        of = source.meta["val"].dtype
        if of.itemsize == 1 or not _arguments_of(source):
            continue
        other = torch.float16 if value.dtype == torch.bfloat16 else torch.bfloat16
        if other in types or value.dtype != traced.dtype:
            of = other if other in types else of
            why = "which has none above 65504, and 0 for small ones" if value.dtype == torch.float16 else "which keeps 8 bits of each"
            raise _refused(node, f"{node.target} makes {_short(value.dtype)} of numbers of {_short(of)}, {why}; a kernel of "
                           f"{_short(traced.dtype)} leaves them as they are", f"give all in {_short(traced.dtype)}, or in float32 what is no operand")


def _refuse_rounded_parameter(node, narrow):
    """`t.bfloat16().float()` of fp32 arguments alone: times a distance of thousands it is another slope."""
    while operator_name(narrow).rstrip("_") in SAME_VALUES and narrow.all_input_nodes:
        narrow = narrow.all_input_nodes[0]
    if operator_name(narrow).rstrip("_") not in CONVERSIONS or not narrow.all_input_nodes:
        return
    types = [x.meta["val"].dtype for x in (narrow.all_input_nodes[0], narrow, node)]
    if types[0] != torch.float32 or types[2] != torch.float32 or types[1] not in COARSE:
        return
    if _arguments_of(narrow) == {torch.float32}:
        raise _refused(narrow, f"{narrow.target} rounds numbers of float32 to {_short(types[1])} and makes float32 of them again; a kernel "
                       "computes with what was given", "round them before the call, or leave them as they are")


def _is_floating(node):
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _arguments_of(node):
    """The floating types of the arguments that a node is made of."""
    types, seen, todo = set(), set(), [node]
    while todo:
        at = todo.pop()
        if at in seen or not _is_floating(at):
            continue  # of sizes, and of what was decided, there are no types
        seen.add(at)
        todo += at.all_input_nodes
        if at.op == "placeholder":
            types.add(at.meta["val"].dtype)
    return types


def _is_widening(node, name, dtype):
    """Conversions of whole numbers are exactness.py's."""
    source = node.args[0].meta.get("val") if node.args and isinstance(node.args[0], torch.fx.Node) else None
    return name in CONVERSIONS and isinstance(source, torch.Tensor) and (not source.is_floating_point() or source.dtype == dtype)


def _refuse_number(node):
    for dtype, other in _compared(node):
        if not isinstance(other, (int, float)):
            continue
        held = torch.tensor(float(other)).to(dtype).item()
        if held != other and other == other:
            raise _refused(node, f"{node.target} compares {_short(dtype)} with {other}; PyTorch makes {held} of it on a CPU and "
                           "not on a GPU", f"write {held}, or convert first: x.float() > {other}")
