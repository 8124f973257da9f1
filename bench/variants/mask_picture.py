"""A mask as a small SVG: queries downwards, keys to the right, in tiles of 8 by 8 cells.

Tiles with no kept entry are white: a kernel need not visit them. Green ones are kept whole and need no
mask, orange ones are kept in part. Dark strokes are the kept entries themselves, run by run. Where a
row of SIZES is longer than 64, a cell stands for a square of entries that are all alike.
"""

import torch

from kept import kept
from variants.inputs import module_of, words_of
from variants.rows import Row

CELLS, TILE, PIXELS = 64, 8, 3
FULL, PARTIAL, KEPT, LINE = "#cfe8cf", "#ffe0b0", "#30506e", "#c8c8c8"
SIZES = {  # small numbers that show a mask; default: 64 queries and keys
    "block_causal": {"length": 1024},
    "block_diffusion": {"length": 512}, "block_table": {"length": 1024},
    "bottom_right": {"length": 32, "keys": 64}, "tree_mask": {"length": 32, "keys": 64},
    "tree_bits": {"length": 32, "keys": 64},
    "chunked": {"constants": (("CHUNK", 20),)}, "sliding_window": {"constants": (("WINDOW", 20),)},
    "softcap_window": {"constants": (("WINDOW", 20),)},
    "dilated_window": {"constants": (("WINDOW", 30),)},
    "global_window": {"constants": (("WINDOW", 12), ("GLOBAL", 3))},
    "longformer": {"constants": (("WINDOW", 8), ("GLOBAL", 3))},
    "streaming": {"constants": (("SINKS", 3), ("WINDOW", 14))},
    "neighborhood": {"constants": (("KERNEL", 15),)},
    "grid_window": {"constants": (("WIDTH", 8), ("RADIUS", 1))},
    "share_question": {"document_length": 32}}


def entries(example):
    """[rows, columns] of cells: whether each is kept, for one batch entry and head."""
    torch.manual_seed(1)
    more = {"batch": 2, "heads": 4, "length": CELLS, "prefix_length": 20, "document_length": 20,
            "reach": 8, **SIZES.get(example, {})}
    row = Row(example, **more)
    a, _ = words_of(row, module_of(row), "cpu", torch.bfloat16)
    keep = row.statement.keep and row.statement.keep(a)
    mask = kept(keep, (row.batch, row.heads, row.length, row.all_keys), torch.arange(row.length))[0, 0]
    size = row.all_keys // CELLS
    cells = mask[::size, ::size]
    assert torch.equal(cells.repeat_interleave(size, 0).repeat_interleave(size, 1), mask), example
    return cells


def runs(line):
    """[(first, length)] of the runs of True in a row."""
    found, start = [], None
    for place, value in enumerate([*line, False]):
        if value and start is None:
            start = place
        elif not value and start is not None:
            found.append((start, place - start))
            start = None
    return found


def tiles(cells):
    """(full, partial): for each tile whether it is kept whole, and whether in part."""
    blocks = cells.unflatten(0, (-1, TILE)).unflatten(2, (-1, TILE))
    every, some = blocks.all(3).all(1), blocks.any(3).any(1)
    return every, some & ~every


def path(lines, scale):
    return "".join(f"M{first * scale} {y * scale + scale / 2:g}h{length * scale}"
                   for y, line in enumerate(lines) for first, length in runs(line))


def picture(example):
    cells = entries(example)
    height, width = cells.shape
    full, partial = (path(t.tolist(), TILE) for t in tiles(cells))
    grid = "".join(f"M0 {y}h{width}" for y in range(0, height + 1, TILE))
    grid += "".join(f"M{x} 0v{height}" for x in range(0, width + 1, TILE))
    strokes = [(full, FULL, TILE), (partial, PARTIAL, TILE), (path(cells.tolist(), 1), KEPT, "0.6"),
               (grid, LINE, "0.15")]
    drawn = "".join(f'<path d="{d}" stroke="{colour}" stroke-width="{size}"/>\n'
                    for d, colour, size in strokes if d)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * PIXELS}" '
            f'height="{height * PIXELS}" viewBox="0 0 {width} {height}">\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n{drawn}</svg>\n')
