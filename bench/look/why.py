"""Why a variant is slower than the plain kernel, from the kernels themselves; needs no GPU.

    python bench/look/why.py OUT [--only NAME] [--bench FILE.json] [--json WHY.json] [--markdown]

OUT holds the kernels of `bench/kernels.py --rows variants`. For each row of that table:

    tiles     blocks of keys that warpgroups visit, over those that have a kept entry (visits.py)
    masked    share of the visits that apply the mask
    computed  scores that are computed for each that is kept: whole blocks are
    FMA ...   a thread's instructions a score, by unit, as the visits mix (sass.py); bytes read a score
    binds     the unit that is asked for longest, and the next, each beside the tensor cores
    at most   speed over full attention's, were the first always busy, in both kernels
    measured  the same of a run of bench/bench.py (--bench): TFLOP/s over those of full attention

Where the tensor cores bind and a kernel is slower still, its softmax takes longer than the products of
the other warpgroup that it should hide behind: the next unit says of what it has too much. Needs nvdisasm:
the CUDA toolkit's, or Triton's; without it the tiles are told alone.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from kept import axes_of, count  # noqa: E402
from look import sass, visits  # noqa: E402
from look.prepass import Table  # noqa: E402
from table import is_ours  # noqa: E402
from variants.rows import ROWS  # noqa: E402

PLAIN = "full"


def tiles(row, folder):
    """What visits.counts says of a row's kernel, and the scores computed for each that is kept."""
    import torch
    from peers import DTYPES
    from variants.statements import causal
    from variants.inputs import module_of, words_of
    a, arguments = words_of(row, module_of(row), "cpu", getattr(torch, DTYPES[row.dtype]))
    keep, sizes = row.statement.keep, (row.batch, row.heads, row.length, row.all_keys)
    keep = keep and keep(a)
    program = visits.Program((folder / "kernel.tl").read_text(),
                             {**dict(zip("BHMN", sizes)), "G": row.groups}, readable(arguments))
    differs = tuple(size is not None for size in axes_of(keep, sizes))
    found = visits.counts(program, keep, sizes, differs)
    scores = found["visited"] * visits.WARPGROUP_ROWS * program.names["BN"]
    kept = found["kept"]
    if row.counted == "causal":
        kept = count(causal(a), (1, 1, *sizes[2:])) * found["heads"]
    return found | {"computed": scores / kept}


def readable(arguments):
    """Numbers, and tensors of whole numbers, which bounds may read."""
    import torch
    return {name: Table(value) if isinstance(value, torch.Tensor) else value
            for name, (_, value) in arguments.items()
            if not isinstance(value, torch.Tensor) or not value.is_floating_point()}


def instructions(folder, masked):
    """Units of a score as the visits mix: the leanest loop is the one without a mask."""
    constants = json.loads((folder / "launch.json").read_text())["constants"]
    loops = sass.loops_of(folder / "kernel.cubin", constants["BN"], constants["D"])
    if not loops:
        raise ValueError("no main loop is found in the SASS")
    lean, others = loops[0], loops[1:] or loops
    mixed = {unit: sum(loop.units[unit] for loop in others) / len(others) for unit in lean.units}
    units = {unit: masked * mixed[unit] + (1 - masked) * lean.units[unit] for unit in lean.units}
    loaded = masked * max(loop.loaded_bytes for loop in others) + (1 - masked) * lean.loaded_bytes
    cycles = {unit: units[unit] / rate for unit, rate in sass.RATES.items()}
    cycles["tensor"] = sass.tensor_cycles(constants["D"], constants["V"])
    return {"units": units, "bytes": loaded, "cycles": cycles, "keys": constants["BN"],
            "registers": constants.get("WARPGROUP_REGISTERS")}


def explained(row, folder):
    """Everything that is known of one row, as JSON has it."""
    found = {"key": row.key, "example": row.example, "tiles": tiles(row, folder)}
    masked = found["tiles"]["masked"] / found["tiles"]["visited"]
    try:
        found |= instructions(folder, masked)
    except (FileNotFoundError, RuntimeError, ValueError) as error:
        return found | {"unknown": str(error)}
    beside = {unit: cycles / found["cycles"]["tensor"] for unit, cycles in found["cycles"].items()}
    order = sorted(beside, key=lambda unit: (-beside[unit], unit != "tensor"))
    return found | {"binds": order[0], "next": order[1], "beside_tensor": beside,
                    "cost": beside[order[0]] * found["tiles"]["computed"]}


def with_speeds(rows, bench):
    """Adds what speed is possible of the plain kernel's, and what is measured."""
    plain = next((r for r in rows.values() if r["key"] == PLAIN and "cost" in r), None)
    speeds = {name: ours["tflops"] for name, case in bench.get("cases", {}).items()
              for label, ours in case["rows"].items() if is_ours(label) and ours["status"] == "ok"}
    of_plain = next((t for name, t in speeds.items() if rows.get(name, {}).get("key") == PLAIN), None)
    for name, row in rows.items():
        if plain and "cost" in row:
            row["at_most"] = plain["cost"] / row["cost"]
        if of_plain and name in speeds:
            row["measured"], row["tflops"] = speeds[name] / of_plain, speeds[name]
    return rows


HEADER = ["", "tiles", "masked", "computed", "FMA", "ALU", "MUFU", "issued", "bytes", "keys",
          "binds", "next", "at most", "measured"]


def cells(name, row):
    found, units = row["tiles"], row.get("units")
    first = [name, f"{found['visited'] / found['needed']:.2f}" + "*" * found["listed"],
             f"{100 * found['masked'] / found['visited']:.0f} %", f"{found['computed']:.2f}"]
    if not units:
        return first + ["-"] * (len(HEADER) - 5) + [row["unknown"][:40]]
    return first + [*(f"{units[u]:.1f}" for u in ("FMA", "ALU", "MUFU", "issue")),
                    f"{row['bytes']:.1f}", str(row["keys"]),
                    *(f"{row[u]} {row['beside_tensor'][row[u]]:.2f}" for u in ("binds", "next")),
                    f"{row['at_most']:.2f}" if "at_most" in row else "-",
                    f"{row['measured']:.2f}" if "measured" in row else "-"]


def printed(rows, markdown):
    table = [HEADER, *(cells(name, row) for name, row in rows.items())]
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in table]
        return "\n".join([lines[0], "|---|" + "---:|" * (len(HEADER) - 1), *lines[1:]])
    widths = [max(len(line[n]) for line in table) for n in range(len(HEADER))]
    return "\n".join("  ".join(cell.ljust(w) if n == 0 else cell.rjust(w)
                               for n, (cell, w) in enumerate(zip(line, widths))) for line in table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", action="append", metavar="NAME", help="rows of this folder")
    parser.add_argument("--bench", type=Path, metavar="FILE.json", help="what bench.py wrote")
    parser.add_argument("--json", type=Path, metavar="WHY.json", help="write all that was found")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    rows = {}
    for row in ROWS["variants"]:
        folder = arguments.out / row.key
        if arguments.only and row.key not in [*arguments.only, PLAIN]:
            continue
        if not (folder / "kernel.tl").exists():
            print(f"{row.name}: no kernel in {folder}", file=sys.stderr)
            continue
        try:
            rows[row.name] = explained(row, folder)
        except visits.Unreadable as error:
            print(f"{row.name}: what it visits cannot be told: {error}", file=sys.stderr)
    bench = json.loads(arguments.bench.read_text()) if arguments.bench else {}
    rows = with_speeds(rows, bench)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    print(printed(rows, arguments.markdown))
    if any(row["tiles"]["listed"] for row in rows.values()):
        print("* a pre-pass lists them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
