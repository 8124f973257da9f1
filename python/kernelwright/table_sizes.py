"""How long an argument must be that has sizes of its own, such as a table of blocks or a packed mask.

What a case says of queries and keys says nothing of these: the example has as many blocks as its own
keys need. So each of them grows to what the graph reads there. A graph's sizes and scalars, its
ranges and what is computed from them have values before any tensor is drawn; an operator that reads
at such indices asks for one more than the greatest. Indices that are data themselves ask for nothing:
there the size stays, as in src/spec/problem.cpp, which does the same from the attention form.
"""

import torch
from torch.fx.node import map_arg

from .graph import operator_name


def grown(traced, sizes, values, own, placeholders):
    """`values`, of all symbols, but those of the symbols in `own` no less than what the graph reads.

    `sizes`: graph.Sizes. `placeholders`: values of constants and scalars, by the placeholder's name."""
    values = dict(values)
    if not own:
        return values
    known = {}
    for node in traced.program.graph.nodes:
        shape_or_size = node.meta.get("val")
        if node.op == "placeholder" and node.name in placeholders:
            known[node] = placeholders[node.name].clone()  # an operator may write in place
        elif isinstance(shape_or_size, torch.SymInt):
            known[node] = int(sizes.expr(shape_or_size).subs(values))
        elif node.op == "call_function" and shape_or_size is not None:
            for d, index in _reads(node):
                symbol = sizes.expr(node.args[0].meta["val"].shape[d])
                if index in known and symbol in own and known[index].numel():
                    values[symbol] = max(values[symbol], int(known[index].max()) + 1)
            if all(n in known for n in node.all_input_nodes):
                known[node] = node.target(*map_arg(node.args, known.get),
                                          **map_arg(node.kwargs, known.get))
    return values


def _reads(node):
    """(dimension, node of its indices) of an operator that gathers."""
    name = operator_name(node)
    if name == "index":
        return [(d, index) for d, index in enumerate(node.args[1]) if index is not None]
    if name == "embedding":
        return [(0, node.args[1])]
    if name in ("index_select", "gather"):
        return [(node.args[1], node.args[2])]
    return []
