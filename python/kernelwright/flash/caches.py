"""Where the keys and values of sequences lie: each in a row of its own, or in pages that a table names.

What a function means does not depend on it: `in_pages` makes of a function of rows [B, N, G, D] one of pages.
"""

import inspect

import torch

from ..errors import ArgumentError
from .arguments import integers

KEYS, BATCH = 512, 2  # of examples, so that another process finds the kernel in the cache


class Rows:
    """k [B, N, G, D] and v [B, N, G, V]."""

    def __init__(self, function, q, k, v):
        if k.shape[0] != q.shape[0]:
            raise ArgumentError(function, "k_cache", f"has {k.shape[0]} sequences", f"have {q.shape[0]}, as q")
        self.k, self.v, self.keys = k, v, k.shape[1]
        self.kind = ()

    def arguments(self):
        return self.k, self.v

    def examples(self):
        return [x.new_zeros(BATCH, KEYS, *x.shape[2:]) for x in (self.k, self.v)]

    def specification(self, function):
        return function

    def write(self, cache, places, x):
        """x [B, L, heads, columns], at places [B, L]."""
        cache[torch.arange(x.shape[0], device=x.device)[:, None], places] = x

    def refuse(self, function, lengths):
        """Nothing beside the lengths says where keys are."""


class Pages:
    """k [pages, rows, G, D], v [pages, rows, G, V], and the numbers of each sequence's pages, int32 [B, entries]."""

    def __init__(self, function, q, k, v, table):
        entries = table.shape[1] if isinstance(table, torch.Tensor) and table.dim() == 2 else 0
        integers(function, "block_table", table, (q.shape[0], entries), q.device)
        self.k, self.v, self.table, self.rows = k, v, table, k.shape[1]
        self.keys = entries * self.rows
        self.kind = ("pages", self.rows)
        if self.rows not in (16, 32) and self.rows % 64:
            raise ArgumentError(function, "k_cache", f"has pages of {self.rows} rows", "have pages of 16, 32, or a multiple of 64")

    def arguments(self):
        return self.k, self.v, self.table

    def examples(self):
        entries = -(-KEYS // self.rows)
        table = torch.arange(BATCH * entries, dtype=torch.int32, device=self.table.device).view(BATCH, entries)
        return [*(x.new_zeros(BATCH * entries, *x.shape[1:]) for x in (self.k, self.v)), table]

    def specification(self, function):
        return in_pages(function)

    def write(self, cache, places, x):
        page = self.table.gather(1, (places // self.rows).long())
        cache[page.long(), places % self.rows] = x

    def refuse(self, function, lengths):
        """Raises where the table names, below a sequence's length, a page that is not there. Waits for the GPU."""
        for entry, (pages, length) in enumerate(zip(self.table.tolist(), lengths)):
            for page in pages[:-(-length // self.rows)]:
                if not 0 <= page < self.k.shape[0]:
                    raise ArgumentError(function, "block_table", f"names page {page} for sequence {entry}",
                                        f"name one of the {self.k.shape[0]} pages of k_cache")


def in_pages(function):
    """Of function(q, k, v, *others), k and v [B, N, G, D], the same of pages: called with (q, k, v, table, *others), k and v
    [pages, rows, G, D] and an int32 table [B, entries], of N = entries * rows keys."""
    def paged(q, k, v, table, *others):
        k, v = (x[table.long()].flatten(1, 2) for x in (k, v))
        return function(q, k, v, *others)

    q, k, v, *others = inspect.signature(function).parameters.values()
    table = inspect.Parameter("table", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    paged.__name__, paged.__signature__ = function.__name__, inspect.Signature([q, k, v, table, *others])
    return paged
