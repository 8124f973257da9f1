"""What a graph's operators do beside giving values, taken away or refused.

An operator that writes (`scores.masked_fill_(...)`, `y += x`) becomes the one that gives the new value, where no other tensor that
shares its memory is read later; capture/memory.py knows which. A write into an argument, a parameter or a buffer is seen by others
after the call, and no order of a kernel and the operators around it is the user's: refused. Dropout that does nothing goes.
"""


import re

import torch

from ...capture import memory
from ...capture.diagnostic import Problem
from ...errors import SpecError
from .places import place_of
from .text import operator_name

_NOTHING = {"lift_fresh", "lift_fresh_copy", "alias", "detach_"}  # detach_: of literals
_DROPOUTS = {"dropout", "alpha_dropout", "feature_dropout", "native_dropout", "feature_alpha_dropout"}
_ASSERTS = {"_assert_scalar", "_assert_async", "sym_constrain_range_for_size", "sym_constrain_range", "_assert_tensor_metadata"}


def clean(graph, file, line):
    """Changes the graph. Raises SpecError at an operator that writes where others see it."""
    try:
        memory.refuse_shared_writes(graph)
    except Problem as problem:
        at = next((place_of(n) for n in graph.nodes if problem.message.startswith(str(n.target) + " ")), None) or (file, line)
        raise SpecError(problem.message, *at, 1, problem.code, problem.hint) from None
    lies = _memory(graph)
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        name = operator_name(node)
        if _drops_nothing(node, name) or name in _NOTHING and len(node.args) == 1:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif name in _ASSERTS:
            graph.erase_node(node)
        elif _writes(node):
            _without_write(graph, node, name, lies, file, line)
    for node in reversed(list(graph.nodes)):
        if not node.users and node.op in ("call_function", "get_attr") and not is_random(node):
            graph.erase_node(node)


def dropout_of(node):
    """The probability that an operator drops with; 0 of one that drops nothing."""
    name = operator_name(node).rstrip("_")
    if name in _DROPOUTS and len(node.args) > 2:
        return node.args[1] if node.args[2] in (True, None) else 0
    if name == "scaled_dot_product_attention":
        return node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0)
    return 0


def _drops_nothing(node, name):
    return name in ("dropout", "dropout_", "alpha_dropout", "feature_dropout") and not dropout_of(node)


def is_random(node):
    """Whether an operator draws numbers: not where its probability is 0."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    named = torch.Tag.nondeterministic_seeded in node.target.tags or operator_name(node).rstrip("_") in _DROPOUTS
    return named and (operator_name(node).rstrip("_") not in _DROPOUTS | {"scaled_dot_product_attention"} or bool(dropout_of(node)))


def _writes(node):
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def _memory(graph):
    """{node: the node whose memory it lies in}"""
    lies = {}
    for node in graph.nodes:
        base, _ = memory._aliased(node)
        lies[node] = lies.get(base, base) if base is not None else node
    return lies


def _without_write(graph, node, name, lies, file, line):
    written = node.args[0] if node.args else None
    base = lies.get(written, written)
    at = place_of(node, file) or (file, line)
    if not isinstance(base, torch.fx.Node) or base.op == "placeholder":
        what = re.sub(r"^[bpc]_owner_\d+_", "", base.name) if isinstance(base, torch.fx.Node) else "a tensor"
        what = "an argument" if what.startswith("tensors_") else what
        raise SpecError(f"{node.target} writes into {what}, which others see "
                        "after the call; a kernel and the operators around it give values", *at, 1, "spec.writes",
                        "give the new value a name: x = x + 1, torch.where(...), x.clone()")
    packet, overload = getattr(torch.ops.aten, name.rstrip("_"), None), node.target._overloadname
    if not name.endswith("_") or packet is None or overload not in packet.overloads():
        if name != "copy_":
            raise SpecError(f"{node.target} writes into memory, and there is no operator that gives its value", *at, 1, "spec.writes")
        new, kwargs = torch.ops.aten.copy.default, {}
    else:
        new, kwargs = getattr(packet, overload), dict(node.kwargs)
    with graph.inserting_before(node):
        value = graph.call_function(new, node.args, kwargs)
        value.meta = dict(node.meta)
        if node.meta["val"].dtype != _natural_dtype(node):
            cast = graph.call_function(torch.ops.aten.to.dtype, (value, node.meta["val"].dtype))
            cast.meta = dict(node.meta)
            value = cast
    node.replace_all_uses_with(value)
    graph.erase_node(node)


def _natural_dtype(node):
    """The type that an operator gives that need not keep the type of what it writes."""
    tensors = [x.meta["val"] for x in node.all_input_nodes if isinstance(x.meta.get("val"), torch.Tensor)]
    dtype = tensors[0].dtype
    for other in tensors[1:]:
        if other.dim():
            dtype = torch.promote_types(dtype, other.dtype)
    return dtype if operator_name(node).rstrip("_") in ("add", "sub", "mul", "div") else node.meta["val"].dtype
