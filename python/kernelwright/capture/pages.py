"""Keys and values in pages: `k[table].flatten(1, 2)`, of k [pages, rows, heads, D] (or [pages, heads, rows, D]) and
a table of page numbers [B, entries].

Two sizes of such a function are not what they look like. How many pages there are is the cache's affair, not the
batch's, though pages come first in the operand: a case has as many as its table names. And how many keys there are
says the table, whose entries stand for a page's rows each.
"""

import math

import torch

from .graph import operator_name

SAME_NUMBERS = {"_to_copy", "to", "clone", "contiguous", "alias", "detach"}


class Pages:
    """Of a trace: which sizes count pages, which count entries of tables, and who draws the tables."""

    def __init__(self, traced, sizes):
        graph = traced.program.graph
        given = [n for n, argument in enumerate(traced.is_argument) if argument]
        streams = dict(zip(traced.program.graph_signature.user_inputs, given))
        self.counts = {}  # symbol of a number of pages -> streams of the tables that name them
        self.rows = {}  # symbol of a number of entries -> rows of a page
        self.tables = {}  # stream of a table -> its sizes
        for node in graph.nodes:
            found = _read(node, streams, traced.paged)
            if found is None:
                continue
            operand, table = (found_node.meta["val"] for found_node in found)
            self.tables[streams[found[1].name]] = [sizes.expr(size) for size in table.shape]
            pages, entries = sizes.expr(operand.shape[0]), sizes.expr(table.shape[-1])
            if pages.is_Symbol:
                self.counts.setdefault(pages, set()).add(streams[found[1].name])
            if entries.is_Symbol:
                self.rows[entries] = _rows_of_a_page(graph, sizes, entries)

    def draw_of(self, stream, values):
        """How a table is drawn: numbers of as many pages as it has entries, and one more."""
        entries = math.prod(int(size.subs(values)) for size in self.tables[stream])
        return {"kind": "integer", "low": 0, "high": entries}

    def in_keys(self, symbol, keys):
        """What a size is where there are so many keys, or somewhat more."""
        return -(-keys // self.rows[symbol]) if symbol in self.rows else keys

    def named(self, values, hows):
        """`values`, of all symbols, with as many pages as the tables drawn name."""
        return {**values, **{symbol: 1 + max(hows[stream]["high"] for stream in streams)
                             for symbol, streams in self.counts.items()}}


def _read(node, streams, paged):
    """(node of the operand, node of the table) of a read of pages, or None."""
    if node.op != "call_function" or operator_name(node) != "index" or len(node.args[1]) != 1:
        return None
    operand, table = node.args[0], node.args[1][0]
    while table.op == "call_function" and operator_name(table) in SAME_NUMBERS:
        table = table.args[0]
    if streams.get(operand.name) not in paged or table.name not in streams:
        return None
    return operand, table


def _rows_of_a_page(graph, sizes, entries):
    """What an entry counts for where the pages' rows are one dimension: that has `entries * rows`."""
    for node in graph.nodes:
        value = node.meta.get("val")
        for size in value.shape if isinstance(value, torch.Tensor) else ():
            rows = sizes.expr(size) / entries
            if rows.is_Integer and rows > 1:
                return int(rows)
    return 1
