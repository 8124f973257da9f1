"""Which blocks of keys a kernel visits, and how many it need not: read off its kernel.tl.

The program says which rows of keys a warpgroup computes: `key_blocks` and the loops of the warpgroup around
it. These few lines of TL are arithmetic on whole numbers, written as Python writes it, and are run here
as such for every warpgroup of every block of queries; what its loops hand to `advance(n, partial)` and
`softmax(n, partial, ...)` is a visit, with a mask or without. A program whose `key_block(c, n)` says which
block visit n is has that run too.

Beside them stands what the mask needs (kept.py): a block of BN keys and a warpgroup's 64 rows is needed
where an entry of it is kept, and full where all are.
"""

import re
import types

import torch

from kept import kept
from look.prepass import words
from look.tl_python import ceil_div, expression, lets, parts, where

WARPGROUP_ROWS = 64
SIZE = re.compile(r"^    (\w+): size = (.*)$", re.M)
DEF = re.compile(r"^def (\w+)\((.*?)\) -> (\w+):\n((?:    .*\n)+)", re.M)
LOOP = re.compile(r"^for t, n in range_down_counted(?:_rolled)?\((.*)\):$")
STEP = re.compile(r"^step (\w+)\(n: i32, partial: bool")
CALL = re.compile(r"^(\w+)\((.*)\)$")
HEADS_AT_MOST = 4  # of masks that differ between heads, so many are looked at


class Unreadable(Exception):
    """A program whose visits cannot be told here: what a pre-pass lists, say."""


class Program:
    """kernel.tl, as far as it says what is visited."""

    def __init__(self, text, sizes, arguments):
        """`sizes` has B, H, G, M, N; `arguments` the numbers and the tensors (prepass.Table) that the
        program may read, by its names for them."""
        self.names = {"ceil_div": ceil_div, "where": where, "min": min, "max": max, "true": True,
                      "false": False, **arguments, **sizes}
        for line in text.splitlines():
            if line.startswith("param "):
                for name, code in lets(line.replace("param ", "let ", 1)):
                    self.names[name] = eval(code, dict(self.names))
            if line.startswith("record "):
                name, _, fields = line.removeprefix("record ").partition(": ")
                self.names[name] = record(fields.split(", "))
        for name, parameters, result, body in DEF.findall(text):
            if name != "block_of":
                self.names[name] = self._function(parameters, result, body)
        self.has_key_block = "key_block" in self.names
        self.lists = "list_blocks" in text
        try:
            self._read_sizes(text)
            self.names.update(words(text, self.names))
        except (NameError, TypeError, SyntaxError) as error:
            raise Unreadable(str(error)) from None
        self._read_warpgroup(text)

    def _function(self, parameters, result, body):
        arguments = [p.partition(":")[0].strip() for p in parameters.split(",")]
        steps = [line.strip() for line in body.splitlines()]
        known = [pair for line in steps if line.startswith("let ") for pair in lets(line)]
        returned = [expression(value) for _, value in parts(steps[-1].removeprefix("return "))]

        def call(*values):
            names = {**self.names, **dict(zip(arguments, values))}
            for name, code in known:
                names[name] = eval(code, names)
            found = [eval(code, names) for code in returned]
            return self.names[result](*found) if result in self.names else found[0]
        return call

    def _read_sizes(self, text):
        for name, value in SIZE.findall(text.partition("\nshared:")[0]):
            try:
                self.names[name] = eval(expression(value), dict(self.names))
            except NameError:  # what the order of blocks needs, say
                pass

    def _read_warpgroup(self, text):
        warpgroup = text.partition("warpgroups me from")[2]
        lines = [line.strip() for line in warpgroup.splitlines()]
        self.before, self.loops, steps = [], [], {found[1] for found in map(STEP.match, lines) if found}
        inside_step, bounds = False, None
        for line, raw in zip(lines, warpgroup.splitlines()):
            depth = len(raw) - len(raw.lstrip())
            if line.startswith("step "):
                inside_step, depth_of_step = True, depth
            elif inside_step and depth <= depth_of_step:
                inside_step = False
            if inside_step:
                continue
            if line.startswith("let ") and "block_of" not in line:
                self.before += lets(line)
            if found := LOOP.match(line):
                bounds = (depth, [expression(value) for _, value in parts(found[1])])
            elif bounds and depth <= bounds[0]:
                bounds = None
            if (found := CALL.match(line)) and found[1] in steps:
                values = [expression(value) for _, value in parts(found[2])][:2]
                self.loops.append((bounds and bounds[1], values))
        if not self.loops:
            raise Unreadable("the warpgroups' loop has no step of (n, partial)")

    def visits(self, b, h, m, cta, me):
        """[(block of keys, whether it is masked)] of one warpgroup."""
        names = {**self.names, "c": types.SimpleNamespace(b=b, h=h, m=m), "cta": cta, "me": me}
        unknown = {}
        try:
            for name, code in self.before:
                try:
                    names[name] = eval(code, names)
                except NameError as error:  # a slope, a gate: no loop's bound
                    unknown[name] = error
            found = []
            for bounds, (number, partial) in self.loops:
                if bounds is None:
                    found.append((eval(number, names), bool(eval(partial, names))))
                    continue
                high, low = (eval(code, names) for code in bounds)
                for n in range(high, low - 1, -1):
                    names["n"] = n
                    found.append((eval(number, names), bool(eval(partial, names))))
        except (NameError, TypeError, AttributeError, IndexError, KeyError) as error:
            raise Unreadable(str(unknown.get(getattr(error, "name", None), error))) from None
        return [(self.names["key_block"](names["c"], n), partial) for n, partial in found] if (
            self.has_key_block) else found


def record(fields):
    def make(*values):
        return types.SimpleNamespace(**dict(zip(fields, values)))
    return make


# ---- counting

def heads_to_look_at(count, differ):
    return sorted({round(n * (count - 1) / (HEADS_AT_MOST - 1)) for n in range(HEADS_AT_MOST)}
                  if differ else {0})


def needed(keep, sizes, width, b, h):
    """(needed, full: [warpgroups' blocks of 64 rows, blocks of `width` keys], how many entries are kept), of
    one head."""
    _, _, queries, keys = sizes
    some, every, entries = [], [], 0
    for rows in torch.arange(queries).split(8 * WARPGROUP_ROWS):
        found = kept(keep, sizes, rows)
        mask = found[min(b, found.shape[0] - 1), min(h, found.shape[1] - 1)]
        entries += int(mask.sum())
        rows_over, keys_over = -len(rows) % WARPGROUP_ROWS, -keys % width
        tiles = [torch.nn.functional.pad(mask, (0, keys_over, 0, rows_over), value=outside)
                 .unflatten(0, (-1, WARPGROUP_ROWS)).unflatten(2, (-1, width))
                 for outside in (False, True)]
        some.append(tiles[0].any(3).any(1))
        every.append(tiles[1].all(3).all(1))
    return torch.cat(some), torch.cat(every), entries


def counts(program, keep, sizes, differs):
    """What a kernel visits of the heads that are looked at, in blocks of a warpgroup's rows by BN keys:
    {"visited", "masked", "needed", "partly": needed and not full, "blocks": all there are,
    "heads": how many heads, "kept": entries of theirs, "listed": whether a pre-pass says what is visited}. `differs` says whether
    the mask differs between (batch entries, heads). AssertionError where a kept entry is not visited, or
    one without a mask is not kept: such a kernel is wrong."""
    names = program.names
    total = dict.fromkeys(("visited", "masked", "needed", "partly", "blocks", "heads", "kept"), 0)
    warpgroups = names["BM"] // WARPGROUP_ROWS
    for b in range(sizes[0] if differs[0] else 1):
        for h in heads_to_look_at(sizes[1], differs[1]):
            some, every, entries = needed(keep, sizes, names["BN"], b, h)
            total["heads"] += 1
            total["kept"] += entries
            total["blocks"] += some.numel()
            total["needed"] += int(some.sum())
            total["partly"] += int((some & ~every).sum())
            for warpgroup in range(len(some)):
                m, rest = divmod(warpgroup, warpgroups)
                visits = program.visits(b, h, m, *divmod(rest, names["WARPGROUPS"]))
                hold_against(visits, some[warpgroup], every[warpgroup], warpgroup)
                total["visited"] += len(visits)
                total["masked"] += sum(bool(partial) for _, partial in visits)
    return total | {"listed": program.lists}


def hold_against(visits, some, every, warpgroup):
    blocks, rows = {n for n, _ in visits}, f"rows {warpgroup * WARPGROUP_ROWS} and on"
    left_out = [n for n in some.nonzero().flatten().tolist() if n not in blocks]
    assert not left_out, f"{rows}: block {left_out[0]} has a kept entry, and is not visited"
    wrong = [n for n, partial in visits if not partial and not every[n]]
    assert not wrong, f"{rows}: block {wrong[0]} has no mask, and not all of it is kept"
