"""What is decided by numbers of 16 bits: `gate > 0.1`, `(a + b) > 1.0` with gates, a and b in bf16.

A form, and a kernel, compute with reals as exact as they can; that PyTorch rounds to 16 bits on the way is an error of the
function's own, which a kernel need not repeat. In a mask or an index it is another decision: bf16(1 + 0.002) is 1, and not
above it. And a Python number is compared as it is on a GPU, and rounded to the tensor's type on a CPU. Both are refused at the
operator's own line. What is made of queries and keys is no matter of this: scores are continuous, and rounded in every kernel.
"""

import torch

from .exactness import COMPARISONS, CONVERSIONS, MADE_WHOLE, SAME_VALUES, _refused, _short
from .graph import operator_name, place_of

COARSE = (torch.bfloat16, torch.float16, torch.float8_e4m3fn)
PRODUCTS = {"matmul", "mm", "bmm", "einsum", "scaled_dot_product_attention", "linear", "baddbmm"}
CHOICES = {"where", "masked_fill", "cat", "stack", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "minimum", "maximum",
           "clamp", "abs", "neg", "relu"}


def refuse_coarse_decisions(traced):
    """Raises Problem for the first comparison or index that depends on how 16 bits round."""
    products, rounded = set(), {}  # nodes that a product is in; node -> the operator that rounded
    for node in traced.program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "call_function":
            continue
        name = operator_name(node).rstrip("_")
        if name in PRODUCTS or products & set(node.all_input_nodes):
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


def _is_widening(node, name, dtype):
    """Conversions of whole numbers are exactness.py's."""
    source = node.args[0].meta.get("val") if node.args and isinstance(node.args[0], torch.fx.Node) else None
    return name in CONVERSIONS and isinstance(source, torch.Tensor) and (not source.is_floating_point() or source.dtype == dtype)


def _refuse_number(node):
    for x, other in (node.args[:2], node.args[1::-1]):
        value = x.meta.get("val") if isinstance(x, torch.fx.Node) else None
        if not isinstance(value, torch.Tensor) or value.dtype not in COARSE or not isinstance(other, (int, float)):
            continue
        held = torch.tensor(float(other)).to(value.dtype).item()
        if held != other and other == other:
            raise _refused(node, f"{node.target} compares {_short(value.dtype)} with {other}; PyTorch makes {held} of it on a CPU and "
                           "not on a GPU", f"write {held}, or convert first: x.float() > {other}")
