"""Guards around parts of the user's code, put into the graph: `with torch.no_grad():`, `with torch.autocast(...):`.

A trace keeps what stands in such a guard as a graph of its own. Attention in there would not be found, and torch.compile takes these
parts not everywhere, so they are put where they are called. What comes out of no_grad is detached. Under autocast the casts that it would
make are written out, product by product: a product in the narrower type, what needs range in fp32; and where autocast is switched off,
operators carry that (`node.meta["autocast_off"]`), for a caller may have it on.
"""

import torch

from . import cores
from .text import is_size, operator_name

_WIDE = {torch.float16, torch.bfloat16}


def inline(module):
    """Changes a graph module until no guard is left. What holds none of the two guards stays."""
    changed = True
    while changed:
        changed = False
        for node in list(module.graph.nodes):
            kind = getattr(node.target, "__name__", "") if node.op == "call_function" else ""
            if kind in ("wrap_with_set_grad_enabled", "wrap_with_autocast"):
                _put(module, node, kind)
                changed = True


def _put(module, node, kind):
    if kind == "wrap_with_set_grad_enabled":
        (enabled, part, *given), autocast = node.args, None
    else:
        device, dtype, on, _, part, *given = node.args
        enabled, autocast = True, (device, dtype, on)
    body = getattr(module, part.target)
    values = dict(zip((n for n in body.graph.nodes if n.op == "placeholder"), given))
    with module.graph.inserting_before(node):
        for inner in body.graph.nodes:
            if inner.op in ("placeholder", "output"):
                continue
            if inner.op == "get_attr":
                name = f"{part.target}_{inner.target}"
                setattr(module, name, getattr(body, inner.target))
                values[inner] = module.graph.get_attr(name)
            else:
                values[inner] = module.graph.node_copy(inner, lambda n: values[n])
                if autocast is not None:
                    _as_under(module.graph, values[inner], autocast)
            values[inner].meta = dict(inner.meta) | {k: v for k, v in values[inner].meta.items() if k == "autocast_off"}
        out = body.graph.output_node().args[0]
        out = [values[x] if isinstance(x, torch.fx.Node) else x for x in (out if isinstance(out, (tuple, list)) else (out,))]
        if not enabled:
            out = [_detached(module.graph, x) if isinstance(x, torch.fx.Node) and not is_size(x) else x for x in out]
    for user in list(node.users):
        if operator_name(user) == "getitem":
            value = out[user.args[1]]
            user.replace_all_uses_with(value)
            module.graph.erase_node(user)
    if node.users:
        node.replace_all_uses_with(out[0])
    module.graph.erase_node(node)
    if not part.users:
        module.graph.erase_node(part)


def _detached(graph, node):
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return node
    new = graph.call_function(torch.ops.aten.detach.default, (node,))
    new.meta = dict(node.meta)
    return new


def _as_under(graph, node, autocast):
    """Writes out the casts of autocast for one operator; its meta is still that of the part."""
    device, dtype, on = autocast
    if not on:
        node.meta["autocast_off"] = device
        return
    due = node.meta.get("val")
    if not isinstance(due, torch.Tensor) or not due.is_floating_point():
        return
    name = operator_name(node)
    product = name in cores.PRODUCTS or name == cores.FUSED
    floats = [n for n in node.all_input_nodes if isinstance(n.meta.get("val"), torch.Tensor) and n.meta["val"].is_floating_point()]
    widened = due.dtype == torch.float32 and floats and all(n.meta["val"].dtype in _WIDE for n in floats) and not any(
        isinstance(a, torch.dtype) for a in [*node.args, *node.kwargs.values()])
    if not (product or widened):
        return
    with graph.inserting_before(node):
        for given in floats:
            if given.meta["val"].dtype != due.dtype:
                cast = graph.call_function(torch.ops.aten.to.dtype, (given, due.dtype))
                cast.meta = dict(given.meta) | {"val": given.meta["val"].to(due.dtype)}
                node.replace_input_with(given, cast)
