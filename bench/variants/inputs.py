"""One row's tensors, how many entries its mask keeps, and the truth: the example itself, in fp32.

The truth is the user's function called on fp32 copies of the inputs, one batch entry and a few heads
at a time, since it holds the whole matrix of scores. Every row of the picked heads is looked at; the
other heads are held against an output that was already found right.
"""

import types

import torch

from kept import axes_of, count
from peers import DTYPES

PICKED = 2  # batch entries, and query heads


class VariantInputs:
    """q, k, v are [B, H, S, D], where k and v may have fewer heads; qs, ks, vs hold the same values as
    [B, S, H, D]. `a` is what the statement sees; `arguments` is {name: (dimensions, value)}."""

    def __init__(self, row, device):
        torch.manual_seed(0)
        self.case, self.device, self.dtype = row, device, getattr(torch, DTYPES[row.dtype])
        self.qs, self.ks, self.vs = (
            torch.randn(row.batch, length, heads, columns, device=device).to(self.dtype)
            for length, heads, columns in ((row.length, row.heads, row.dim),
                                           (row.all_keys, row.groups, row.dim),
                                           (row.all_keys, row.groups, row.columns)))
        self.q, self.k, self.v = (t.transpose(1, 2).contiguous() for t in (self.qs, self.ks, self.vs))
        self.grouped = row.groups != row.heads
        self.module = module_of(row)
        self.a, self.arguments = words_of(row, self.module, device, self.dtype)
        statement = row.statement
        self.keep = statement.keep and statement.keep(self.a)
        self.score = statement.score and statement.score(self.a)
        self.finish = statement.finish and statement.finish(self.a)
        self.rows = statement.rows and statement.rows(self.a)
        self.sizes = (row.batch, row.heads, row.length, row.all_keys)

    def changed(self, q, k):
        """q and k as their rows enter the product, [B, H, S, D]: computed in fp32, or in fp64 of fp64."""
        if not self.rows:
            return q, k
        wide = q.dtype if q.dtype == torch.float64 else torch.float32
        return tuple(t.to(q.dtype) for t in self.rows(q.to(wide), k.to(wide)))

    @property
    def kept(self):
        """Entries of the score matrices that the mask keeps, of all batch entries and heads."""
        counted = (lambda b, h, i, j: j <= i) if self.case.counted == "causal" else self.keep
        return count(counted, self.sizes, self.device)

    @property
    def flop(self):
        return 2 * (self.case.dim + self.case.columns) * self.kept

    @property
    def mask_axes(self):
        """(B or None, H or None): what the mask depends on, as create_block_mask asks."""
        return axes_of(self.keep, self.sizes, self.device)

    @property
    def shape(self):
        row = self.case
        return (row.batch, row.heads, row.length, row.columns)

    def example(self, batch, heads, of=lambda t: t.float()):
        """The example's output [1, heads, M, V] for one batch entry and some query heads. Each has its
        own copy of the head of K and V that it shares."""
        shared = self.case.heads // self.case.groups
        kv = [head // shared for head in heads]
        q = of(self.q[batch:batch + 1, heads])
        k, v = (of(t[batch:batch + 1, kv]) for t in (self.k, self.v))
        more = [sliced(value, dims, batch, heads, of) for dims, value in self.arguments.values()]
        function = getattr(self.module, self.case.example)
        if self.case.statement.layout == "bshd":
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
        output = function(q, k, v, *more)
        output = output[0] if isinstance(output, tuple) else output
        return output.transpose(1, 2) if self.case.statement.layout == "bshd" else output

    def sample(self):
        """(pick, expected): pick takes of an output [B, H, M, V] what expected has."""
        h, b = self.case.heads, self.case.batch
        heads = list(range(h)) if self.case.statement.counts_heads else sorted({h // 3, h - 1})
        entries = sorted({0, b - 1})[:PICKED]
        expected = torch.cat([self.example(entry, heads) for entry in entries])
        return lambda output: output[entries][:, heads], expected


def module_of(row):
    """The example's module, with the row's constants and type in it."""
    module = types.ModuleType(row.key)
    exec(compile(row.text, f"{row.key}.py", "exec"), module.__dict__)
    return module


def words_of(row, module, device, dtype):
    """(a, arguments): what a statement may use, and the arguments after q, k and v in order."""
    constants = {name: value for name, value in vars(module).items() if name.isupper()}
    a = types.SimpleNamespace(
        B=row.batch, D=row.dim, H=row.heads, G=row.groups, M=row.length, N=row.all_keys, dtype=dtype,
        device=device, tanh=torch.tanh, prefix_length=row.prefix_length,
        document_length=row.document_length, reach=row.reach or row.all_keys - 1, **constants)
    arguments = {}
    for name, (dims, value) in row.statement.tensors(a).items():
        value = value.to(device) if isinstance(value, torch.Tensor) else value
        arguments[name] = (dims, value)
        setattr(a, name, value)
    return a, arguments


def sliced(value, dims, batch, heads, of):
    """An argument for one batch entry and some heads."""
    if not isinstance(value, torch.Tensor):
        return value
    for axis, name in enumerate(dims.split()):
        if name == "B":
            value = value.narrow(axis, batch, 1)
        elif name == "H":
            value = value.index_select(axis, torch.tensor(heads, device=value.device))
    return of(value) if value.is_floating_point() else value
