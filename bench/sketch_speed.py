"""Measured speeds of kernels made from sketches/attention.tl, on a machine with a GPU:

    python bench/sketch_speed.py FOLDER JSON

FOLDER holds a kernel `D_V` for each pair of head dimensions in OPERATORS (sketch_table.py), as `kernelwright make --from
sketch` wrote it. Every cell of the table that this GPU can fill is timed, in an order drawn at random in each of three
rounds, a cuBLAS product among them: bursts and sustained, as versus.py does. JSON is what sketch_table.py reads.
"""

import argparse
import json
import random
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

from measuring import Machine  # noqa: E402
from sketch_table import LENGTHS, OPERATORS, ROWS  # noqa: E402
from versus import inputs_of, sustained_ms  # noqa: E402

ROUNDS = 3


def main():
    import torch
    from kernelwright.runtime.launch import Kernel
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("json", type=Path)
    options = parser.parse_args()
    machine, runs, cells = Machine(), {}, []
    machine.pause_seconds = 0.1
    for name, d, v, heads, groups in OPERATORS:
        kernel = Kernel(options.folder / f"{d}_{v}")
        for length in LENGTHS:
            sizes = {"B": ROWS // length, "H": heads, "G": groups, "M": length, "N": length, "D": d, "V": v}
            runs[name, d, length] = kernel.prepare(*inputs_of(kernel, sizes, torch)), 2 * ROWS * length * heads * (d + v)
    side = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    runs["cuBLAS 8192^3", 0, 0] = (lambda: side @ side.mT), 2 * 8192**3
    times, order = {key: ([], []) for key in runs}, list(runs)
    for round_number in range(ROUNDS):
        random.Random(round_number).shuffle(order)
        for key in order:
            times[key][0].append(machine.burst_ms(runs[key][0]))
            times[key][1].append(sustained_ms(runs[key][0], torch))
    for (name, d, length), both in times.items():
        work = runs[name, d, length][1]
        burst, sustained = (round(work / statistics.median(ms) / 1e9) for ms in both)
        cells.append({"operator": name, "D": d, "length": length, "burst": burst, "sustained": sustained})
        print(f"{name:14} {d:4} {length:6}  {burst:5} TFLOP/s in a burst, {sustained:5} sustained")
    options.json.write_text(json.dumps({**machine.environment(), "clocks": machine.clocks(), "cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()
