"""How long an argument must be that has sizes of its own, such as a table of blocks or a packed mask.

What a case says of queries and keys says nothing of these: the example has as many blocks as its own
keys need. So each of them grows to what the graph reads there. A graph's sizes and scalars, its
ranges and what is computed from them have values before any tensor is drawn; an operator that reads
at such indices asks for one more than the greatest. Indices that are data themselves ask for nothing:
there the size stays, as in src/operator/capture/problem.cpp, which does the same from the attention form.
"""

import operator

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


PROBES = ((3, 700, 410), (2, 330, 900), (5, 640, 640), (1, 70, 2000))  # batch, queries, keys
BLOCKS = (32, 64, 128, 256)  # rows of a block that has an entry of its own


def least(traced, sizes, batch, others, own, placeholders):
    """{symbol of `own`: the size, over the other symbols, that the graph reads at least}, of those whose
    need is one of a few plain expressions at every probe; a table that is
    read at each row of q needs as many entries as q has rows.

    batch, others: symbols of the operands. placeholders: as for grown()."""
    needs = []
    for probe in PROBES:
        values = dict.fromkeys(own, 1) | {s: probe[0] for s in batch}
        values |= {s: probe[1:][min(n, 1)] for n, s in enumerate(others)}
        needs.append((values, grown(traced, sizes, values, own, placeholders)))
    found = {}
    for symbol in own:
        for size in _candidates(batch, others, needs[0][1][symbol]):
            if needs[0][1][symbol] > 1 and all(_value(size, values) == after[symbol]
                                               for values, after in needs):
                found[symbol] = size
                break
    return found


def _candidates(batch, others, constant):
    names = [str(s) for s in [*others, *batch]]
    pairs = [(a, b) for a in names for b in names if a < b]
    return [*names, *(["max", a, b] for a, b in pairs), *(["+", ["+", a, b], -1] for a, b in pairs),
            *(["+", a, b] for a, b in pairs),
            *(["//", ["+", a, block - 1], block] for a in names for block in BLOCKS), constant]


def _value(size, values):
    if isinstance(size, list):
        return {"max": max, "+": operator.add, "//": operator.floordiv}[size[0]](*(_value(part, values) for part in size[1:]))
    return size if isinstance(size, int) else {str(s): n for s, n in values.items()}[size]


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
