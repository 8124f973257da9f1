"""Writes the functions of bench/backward.py that are no examples: full and causal, of each head dimension and number of key heads.

    python bench/backward_specs.py out/specs
    for f in out/specs/*.py examples/softcap.py; do n=$(basename $f .py); build/kernelwright make $f --backward --out out/backward/$n; done

NAME.py has four heads a key head, and its kernel is for any number; of NAME_alone.py each head has keys of its own, and its launches
are held to H == G. Names are those of kernel_of in bench/backward.py: full, causal64_alone.
"""

import pathlib
import sys

HEADS, GROUP = 16, 4
WIDTHS = {64: 64, 96: 96, 128: 128, 192: 128, 256: 256}  # columns of q and k, and of v

TEXT = '''import math

import torch


def {name}(q, k, v):
    """q [B, M, {heads}, {columns}], k [B, N, {groups}, {columns}], v [B, N, {groups}, {width}]; any B, M and N."""
    group = q.shape[2] // k.shape[2]
    k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
    scores = torch.einsum("bihd,bjhd->bhij", q, k) / math.sqrt(q.shape[3])
{mask}    return torch.einsum("bhij,bjhd->bihd", scores.softmax(dim=-1), v)


def example_inputs():
    sizes = ({heads}, {columns}), ({groups}, {columns}), ({groups}, {width})
    return tuple(torch.randn(2, 256, *size, dtype=torch.bfloat16) for size in sizes)
'''
MASK = '''    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).tril()
    scores = scores.masked_fill(~seen, float("-inf"))
'''


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for mask in ("full", "causal"):
        for columns, width in WIDTHS.items():
            for alone in (False, True):
                name = f"{mask}{'' if columns == 128 else columns}{'_alone' if alone else ''}"
                (folder / f"{name}.py").write_text(TEXT.format(
                    name=name, heads=HEADS, groups=HEADS if alone else HEADS // GROUP, columns=columns, width=width,
                    mask=MASK if mask == "causal" else ""))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
