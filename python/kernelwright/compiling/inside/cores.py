"""Where attention is in a graph: its cores.

A core is what no kernel can do without: two products of matrices with weights between them, or one scaled_dot_product_attention. The
second product takes what the first gave, through operators that are no products; softmax, masks, biases and casts are among those,
whatever their order. What tells attention from two layers of a perceptron, which look alike, is that neither factor is a parameter
alone and that both have a batch: `x @ w` is a projection, `q @ k.mT` are scores.

Nothing here decides whether a kernel can hold a core: capture does (choose.py).
"""

import dataclasses
import operator

import torch

from .text import is_size, operator_name

SCORES = {"matmul", "bmm", "baddbmm", "einsum"}
PRODUCTS = SCORES | {"mm", "addmm", "linear", "bilinear", "addbmm", "tensordot", "inner", "mv", "conv1d", "conv2d", "conv3d",
                     "convolution", "conv_transpose1d", "conv_transpose2d", "embedding_bag", "lstm", "gru", "_grouped_mm"}
FUSED = "scaled_dot_product_attention"


@dataclasses.dataclass
class Core:
    """`nodes`: of the graph, the products among them; `first`: the products of scores; `last`: that with the values. Of a
    scaled_dot_product_attention all three are that node."""
    nodes: set
    first: list
    last: torch.fx.Node


def find(graph, inputs):
    """The cores of a graph, in its order. `inputs`: {placeholder: whole.Input}."""
    activations = _activations(graph, inputs)
    cores, ended = [], set()
    for node in graph.nodes:
        if node.op != "call_function":
            continue
        name = operator_name(node)
        if name == FUSED:
            cores.append(Core({node}, [node], node))
            ended.add(node)
        elif name in SCORES and _of_activations(node, activations):
            between, first = _back(node, activations, ended)
            if first:
                cores.append(Core(between | set(first) | {node}, first, node))
                ended |= {node, *first}
    return cores


def factors(node):
    """The two sides of a product, or the three operands of an attention."""
    name = operator_name(node)
    if name == "einsum":
        return list(node.args[1])
    if name == "baddbmm":
        return list(node.args[1:3])
    return list(node.args[:3 if name == FUSED else 2])


def widths(core):
    """Sizes of the dimensions that scores are summed over, and of a value's row: what a kernel's head dimensions are. Of an einsum none
    is looked for, whose letters may stand anywhere."""
    if operator_name(core.last) == FUSED:
        return [n.meta["val"].shape[-1] for n in (*factors(core.last)[:2], core.last)]
    sides = factors(core.last)
    out = [] if operator_name(core.last) == "einsum" else [
        side.meta["val"].shape[-1 if n else -2] for n, side in enumerate(sides) if side not in core.nodes]
    for first in core.first:
        if operator_name(first) != "einsum":
            q, k = factors(first)
            out += [q.meta["val"].shape[-1], k.meta["val"].shape[-2]]
    return out


def _activations(graph, inputs):
    """Nodes that are made of what a call gives."""
    found = set()
    for node in graph.nodes:
        if node.op == "placeholder":
            if inputs[node].kind == "given":
                found.add(node)
        elif not is_size(node) and any(value in found for value in node.all_input_nodes):
            found.add(node)
    return found


def _of_activations(node, activations):
    sides = factors(node)
    return len(sides) == 2 and all(isinstance(x, torch.fx.Node) and x in activations and x.meta["val"].dim() >= 3 for x in sides)


def _back(last, activations, ended):
    """(nodes between, the products that they come from), of what one side of a product is made of. A side whose products have
    ended in another attention is an output of that."""
    for side in factors(last):
        seen, waiting, products = set(), [side], []
        while waiting:
            node = waiting.pop()
            if node in seen or node.op != "call_function" or node not in activations:
                continue
            seen.add(node)
            name = operator_name(node)
            if name in PRODUCTS or name == FUSED:
                if name in SCORES and node not in ended and _of_activations(node, activations):
                    products.append(node)
                continue
            waiting += [n for n in node.all_input_nodes if not is_size(n)]
        if products:
            order = {node: n for n, node in enumerate(last.graph.nodes)}
            return _between(products, last, seen), sorted(products, key=order.get)
    return set(), []


def _between(products, last, seen):
    """Those of `seen` that lie on a way from a product to the last."""
    found, changed = set(products), True
    while changed:
        more = {n for n in seen if n not in found and n not in products and any(v in found for v in n.all_input_nodes)}
        changed = bool(more)
        found |= more
    return found - set(products)


def is_view(node):
    """Whether an operator only says in which order the elements of a tensor are read, and copies none."""
    return operator_name(node) in {"view", "transpose", "permute", "t", "mT", "unsqueeze", "squeeze", "select", "slice", "unbind", "split",
                                   "split_with_sizes", "chunk", "unflatten", "flatten", "reshape", "contiguous", "movedim", "swapaxes",
                                   "narrow", "getitem", "detach", "numpy_T", "matrix_H", "view_as", "tensor_split", "swapdims", "adjoint",
                                   "moveaxis", "_unsafe_view"} or node.target is operator.getitem
