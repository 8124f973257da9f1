"""From a core to the part of the graph that one kernel might hold: a region.

It grows backwards over what changes rows before their product (rotations, norms, casts, copies of grouped heads) and over what makes
masks and biases, and forwards over what changes the output's elements. It ends at products, which are cuBLAS' and not this
kernel's, and at what others need too: a value that something behind the kernel reads is made by PyTorch anyway. Operators that are
`banned`, because capture refused them, are left outside with all that comes before them.

Views at the border are given back: a kernel takes rows of any strides, so that `qkv.view(B, S, 3, H, D)` and a transpose cost nothing
outside, and what it is given has four dimensions, [B, H, S, D] or [B, S, H, D].
"""

import dataclasses
import operator

import torch

from . import cores
from .effects import is_random
from .text import is_size, operator_name

# What no kernel's rows can change by, whatever stands around it.
NEVER = {"topk", "sort", "argsort", "cumsum", "cumprod", "nonzero", "unique", "unique2", "_unique2", "masked_select", "bernoulli", "rand",
          "randn", "randint", "rand_like", "randn_like", "multinomial", "dropout", "native_dropout", "batch_norm", "group_norm",
          "instance_norm", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "interpolate", "upsample_nearest2d", "pixel_shuffle", "unfold",
          "im2col", "index_copy", "index_put", "scatter", "scatter_add", "slice_scatter", "select_scatter", "roll", "flip", "cross_entropy_loss",
          "nll_loss", "fft_fft", "stft", "item", "_local_scalar_dense", "copy"}
_SUMS = {"mean", "sum", "rms_norm", "layer_norm", "native_layer_norm", "linalg_vector_norm", "norm", "normalize", "var", "std", "amax",
         "amin", "max", "min", "logsumexp", "softmax", "log_softmax", "var_mean", "prod"}
_TABLES = {"embedding", "index", "index_select", "gather", "take", "take_along_dim"}
_ORDERS = {"transpose", "permute", "mT", "movedim", "moveaxis", "swapaxes", "swapdims", "adjoint", "expand"}
_CASTS = {"to", "_to_copy", "type_as", "float", "half", "bfloat16", "expand", "repeat", "repeat_interleave", "clone", "expand_as"}


@dataclasses.dataclass(frozen=True)
class Region:
    """`nodes`: in the graph's order; `inputs`: what they read from outside, in that order; `outputs`: what others read of them.
    `core`: the core that it grew from."""
    nodes: tuple
    inputs: tuple
    outputs: tuple
    core: object = dataclasses.field(compare=False, hash=False)


LOG_SUMS = {"logsumexp"}  # of scores: what a kernel can give beside its output
LEVELS = ("all", "no tables", "no sums", "no changes", "no masks", "core")


def grow(core, graph, sizes, level="all", banned=frozenset()):
    """The region of a core at a level: how much of what surrounds it is taken. `sizes`: {node: elements in the example}."""
    order = {node: n for n, node in enumerate(graph.nodes)}
    inside = set(core.nodes)
    shared = _of_products(graph)
    # Backwards, from the last to the first, so that all users of a node are known when it is looked at.
    if level != "core":
        side = ancestors(core)
        for node in reversed(list(graph.nodes)):
            if node in inside or node in banned or not any(user in inside for user in node.users):
                continue
            if _may(node, level, node in side) and (node not in shared or all(u in inside or is_size(u) for u in node.users)):
                inside.add(node)
    inside |= {user for node in core.nodes for user in node.users if operator_name(user) in LOG_SUMS}
    inside = _forwards(core, graph, inside, level, banned, order)
    inside = _trimmed(core, inside, sizes)
    return _region(core, inside, order, graph)


def _may(node, level, of_rows):
    """Whether growth takes an operator. `of_rows`: it changes what comes to a product of scores, or the values."""
    name = operator_name(node)
    if node.op != "call_function" or is_size(node) or name in cores.PRODUCTS or name == cores.FUSED or name in NEVER:
        return False
    if not isinstance(node.target, torch._ops.OpOverload) and node.target is not operator.getitem or is_random(node):
        return False
    if level != "all" and name in _TABLES:
        return False
    if level in ("no sums", "no changes", "no masks") and name in _SUMS:
        return False
    if level in ("no changes", "no masks") and of_rows and not (cores.is_view(node) or name in _CASTS):
        return False
    return level != "no masks" or of_rows


def _of_products(graph):
    """Nodes that are made of a product's result, or of an argument with a batch: what is large, and is not made twice."""
    found = set()
    for node in graph.nodes:
        name = operator_name(node) if node.op == "call_function" else ""
        if name in cores.PRODUCTS or name == cores.FUSED or node.op == "get_attr" or any(
                v in found for v in node.all_input_nodes) and not is_size(node):
            found.add(node)
    return found


def ancestors(core):
    """What rows are made of: everything before the factors of scores, and before the values."""
    waiting = [x for first in core.first for x in cores.factors(first) if isinstance(x, torch.fx.Node)]
    waiting += [x for x in cores.factors(core.last) if isinstance(x, torch.fx.Node) and x not in core.nodes]
    seen = set()
    while waiting:
        node = waiting.pop()
        if node not in seen and node not in core.nodes:
            seen.add(node)
            waiting += node.all_input_nodes
    return seen


def _forwards(core, graph, inside, level, banned, order):
    """With what follows the output alone, up to the last value of four dimensions."""
    chain, at = [core.last], core.last
    behind = _descendants(core.last)
    while True:
        users = [u for u in at.users if not (is_size(u) and operator_name(u) == "sym_size")]
        if len(users) != 1 or users[0] in banned or not _may_follow(users[0], level):
            break
        others = [n for n in users[0].all_input_nodes if n is not at and not is_size(n)]
        if any(n in behind for n in others) or _folds(at, users[0]):
            break
        at = users[0]
        chain.append(at)
    columns = core.last.meta["val"].shape[-1]
    while len(chain) > 1 and (chain[-1].meta["val"].dim() != 4 or chain[-1].meta["val"].shape[-1] != columns):
        chain.pop()
    if chain[-1].meta["val"].dim() != 4:
        return inside
    inside = inside | set(chain)
    if level == "all":  # what makes the factors of the output: the activation of a gate
        for node in chain[1:]:
            for other in node.all_input_nodes:
                if other not in inside and other not in banned and _may(other, level, False) and all(u in inside for u in other.users):
                    inside.add(other)
    return inside


def _folds(before, node):
    """Whether an operator makes other rows of four dimensions: [B, H * D, S] to [B, C, height, width]."""
    return before.meta["val"].dim() == 4 and cores.is_view(node) and operator_name(node) not in _ORDERS | {"contiguous", "detach"} and (
        isinstance(node.meta.get("val"), torch.Tensor) and node.meta["val"].dim() == 4 and operator_name(node) in (
            "view", "reshape", "flatten", "unflatten", "_unsafe_view", "view_as"))


def _may_follow(node, level):
    name = operator_name(node)
    value = node.meta.get("val")
    if node.op != "call_function" or not isinstance(value, torch.Tensor) or name in _SUMS | _TABLES | NEVER or name in cores.PRODUCTS:
        return False
    if name == cores.FUSED or not isinstance(node.target, torch._ops.OpOverload) or name in ("cat", "stack", "dropout"):
        return False
    return level == "all" or cores.is_view(node) or name in _CASTS


def _descendants(node):
    seen, waiting = set(), [node]
    while waiting:
        for user in waiting.pop().users:
            if user not in seen:
                seen.add(user)
                waiting.append(user)
    return seen


def _trimmed(core, inside, sizes):
    """Without the views at the border of rows, from where they have four dimensions on."""
    inside = set(inside)
    for start in [x for first in core.first for x in cores.factors(first)] + cores.factors(core.last):
        way = []
        while isinstance(start, torch.fx.Node) and start in inside and start not in core.nodes:
            way.append(start)
            tensors = [n for n in start.all_input_nodes if not is_size(n)]
            start = max(tensors, key=lambda n: sizes.get(n, 0)) if tensors else None
        for node in reversed(way):
            before = next((n for n in node.all_input_nodes if not is_size(n)), None)
            value = before.meta.get("val") if before is not None else None
            if not cores.is_view(node) or before in inside:
                break
            rows = isinstance(value, torch.Tensor) and (value.dim() == 4 or value.dim() == 5 and sizes.get(before) == sizes.get(way[0]))
            if rows and sizes.get(before) == sizes.get(node) and operator_name(node) in _ORDERS and isinstance(value.shape[-1], int):
                break
            inside.discard(node)
    return inside


def _region(core, inside, order, graph):
    inside = _needed(core, inside)
    nodes = tuple(sorted(inside, key=order.get))
    inputs, outputs = [], []
    for node in nodes:
        for value in node.all_input_nodes:
            if value not in inside and not is_size(value) and value not in inputs:
                inputs.append(value)
    twice = _twice(core, inside)
    for node in nodes:
        if node not in twice and any(u not in inside and not (is_size(u) and operator_name(u) == "sym_size") for u in node.users):
            outputs.append(node)
    outputs.sort(key=lambda node: operator_name(node) in LOG_SUMS)  # behind the output, as kernels give them
    return Region(nodes, tuple(inputs), tuple(outputs), core)


def _needed(core, inside):
    """Without what nothing inside reads, behind the core's end nothing else being left."""
    behind = {n for n in inside if n in _descendants(core.last) or operator_name(n) in LOG_SUMS} | core.nodes
    kept, waiting = set(), list(behind)
    while waiting:
        node = waiting.pop()
        if node in inside and node not in kept:
            kept.add(node)
            waiting += node.all_input_nodes
    return kept


def _twice(core, inside):
    """What is made inside and outside alike, because it is of positions and parameters and costs nothing: masks of several layers."""
    after = descendants_of_all(core.first) | set(core.first)
    return {node for node in inside if node not in after}


def descendants_of_all(nodes):
    return set().union(*map(_descendants, nodes))
