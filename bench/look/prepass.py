"""What a pre-pass lists, computed on the CPU: the `lists` kernel of a kernel.tl, run as Python.

The program's own words say which key blocks are listed: for each block n, and rows of groups r to s - 1,
its body returns (some entry may be kept, every entry is), from the least and the greatest of what the
rows and the keys read. A list is: how many visits, how many of them without a mask, how many for each
group of rows, then the blocks, those without a mask first, in ascending order.
"""

import re

import numpy as np

from look.tl_python import expression, lets, parts

LISTS = re.compile(r"^lists (\w+), threads \d+, w of (.+):\n((?:    .*\n)+)", re.M)
HEAD = re.compile(r"^list_blocks (\w+)\[(.*)\] for (\w+) in range\((.*)\), groups (\w+) to (\w+) of (.*):$")


def _box(tensor, ends):
    """The elements from first to last of each dimension; an index outside reads the last one."""
    place = []
    for size, first, last in zip(tensor.shape, ends[::2], ends[1::2]):
        outside = first < 0 or last >= size
        place.append(slice(min(max(first, 0), size - 1), (size - 1 if outside else last) + 1))
    return tensor[tuple(place)]


def least(tensor, *ends):
    found = _box(tensor.values, ends)
    return int(found.min()) if found.size else 2**31 - 1


def greatest(tensor, *ends):
    found = _box(tensor.values, ends)
    return int(found.max()) if found.size else -2**31


class Body:
    """Lets, and what is returned behind them."""

    def __init__(self, lines):
        self.lets = [pair for line in lines if line.startswith("let ") for pair in lets(line)]
        self.result = next(([expression(value) for _, value in parts(line.removeprefix("return "))]
                            for line in lines if line.startswith("return ")), [])

    def run(self, names):
        for name, code in self.lets:
            names[name] = eval(code, names)
        return [eval(code, names) for code in self.result]


def class_of(body, names, n, number, first, end, groups):
    """"all", or the set of groups that may keep some entry of block n."""
    def keeps(r, s):
        return body.run({**names, number: n, first: r, end: s})
    some, every = keeps(0, groups)
    if not some or every:
        return "all" if some else set()
    if groups == 1:
        return {0}
    found = [keeps(r, r + 1) for r in range(groups)]
    return "all" if all(e for _, e in found) else {r for r, (s, _) in enumerate(found) if s}


def listed(classes, groups):
    """The words of one list; classes are [(block, class)], in ascending order."""
    full = [n for n, found in classes if found == "all"]
    partial = [(n, found) for n, found in classes if found and found != "all"]
    mine = [max([len(full) + k + 1 for k, (_, found) in enumerate(partial) if r in found],
                default=max(len(full), 1)) for r in range(groups)]
    blocks = full + [n for n, _ in partial] or [0]
    return [len(blocks), len(full), *mine, *blocks]


def words(text, names):
    """{the scratch's name: {place: word}} of every list that the program's pre-pass writes."""
    found = LISTS.search(text)
    if not found:
        return {}
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in found[3].splitlines()]
    at = next(k for k, (_, line) in enumerate(lines) if line.startswith("list_blocks "))
    scratch, place, number, bounds, first, end, groups = HEAD.match(lines[at][1]).groups()
    before, body = (Body([line for _, line in part]) for part in (lines[:at], lines[at + 1:]))
    place, groups = expression(place), eval(expression(groups), dict(names))
    bounds = [expression(value) for _, value in parts(bounds)]
    names = {**names, "least": least, "greatest": greatest}
    result = {}
    for w in range(eval(expression(found[2]), dict(names))):
        here = {**names, "w": w}
        before.run(here)
        low, high = (eval(code, here) for code in bounds)
        classes = [(n, class_of(body, here, n, number, first, end, groups)) for n in range(low, high)]
        start = eval(place, here)
        result |= {start + k: word for k, word in enumerate(listed(classes, groups))}
    return {scratch: result}


class Table:
    """A tensor of whole numbers as a program reads it: t[c.b, i]."""

    def __init__(self, tensor):
        self.values = np.asarray(tensor)

    def __getitem__(self, place):
        return int(self.values[place])
