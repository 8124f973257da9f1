"""Speeds of kernels made from sketches/attention.tl: python bench/sketch_table.py docs/results/sketches.md [--measured JSON]

For each GPU of gpus/, QiMeng-Attention's operators in full attention, 16384 query rows in all: sized, scheduled, and
timed by `kernelwright timeline`; for the GPU that sketch_speed.py has run on, what it measured. Where an expert's kernel
exists its prediction by the same model stands beside it. Takes half a minute.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GPUS = {"t4": ("sm_75", "f16"), "rtx8000": ("sm_75", "f16"), "a100": ("sm_80", "bf16"), "l40s": ("sm_89", "bf16"), "h200": ("sm_90a", "bf16")}
OPERATORS = [  # name, D, V, query heads, key heads
    ("MHA", 64, 64, 32, 32), ("GQA", 64, 64, 32, 8), ("MQA", 64, 64, 32, 1),
    ("MHA", 128, 128, 16, 16), ("GQA", 128, 128, 32, 8), ("MQA", 128, 128, 32, 1),
    ("MLA prefill", 192, 128, 16, 16),
]  # fmt: skip
LENGTHS, ROWS = (1024, 4096, 16384), 16384  # keys; query rows in all
EXPERTS = {"a100": "sm80", "h200": "sm90"}  # whose constants are for D 128
HEAD = """# Kernels from a sketch: predicted and measured speeds

Full attention, 16384 query rows in all, TFLOP/s; written by `python bench/sketch_table.py`. Figures are **predicted** by the
[timeline](../timeline.md), but for those of the last column, which were **measured**{measured}. On the other GPUs nothing of
ours has run, and the prediction is surely high there: FlashAttention-2 is published at 195 TFLOP/s for MHA, D 128 and 16384 on
an A100 (QiMeng-Attention, arXiv 2506.12355), and power is not in the model of any card but the H200. In brackets the expert's
kernel for that GPU, where there is one with these constants, by the same prediction.

"""


def kernelwright(*words):
    return subprocess.run([ROOT / "build/kernelwright", *map(str, words)], capture_output=True, text=True)


def scheduled(gpu, d, v, folder):
    """The program's path, or the one line that says why there is none."""
    target, dtype = GPUS[gpu]
    sized, out = folder / "sized.tl", folder / f"{gpu}_{d}_{v}.tl"
    for words in (["size", ROOT / "sketches/attention.tl", "--param", f"D={d}", f"V={v}", "--dtype", dtype, "--out", sized],
                  ["schedule", sized, "--out", out]):  # fmt: skip
        run = kernelwright(*words, "--gpu", gpu, "--target", target)
        if run.returncode:
            return run.stderr.splitlines()[0]
    return out


def tflops(program, gpu, heads, groups, length, d, v):
    shape = f"B={ROWS // length},H={heads},G={groups},M={length},N={length}"
    run = kernelwright("timeline", program, "--gpu", gpu, "--shape", shape, "--json")
    if run.returncode:
        raise SystemExit(f"{gpu} {shape}: {run.stderr}")
    operations = 2 * ROWS * length * heads * (d + v)
    return operations / json.loads(run.stdout)["milliseconds"] / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--measured", type=Path, help="what sketch_speed.py wrote on an H200")
    options, reasons = parser.parse_args(), []
    measured = json.loads(options.measured.read_text()) if options.measured else {"cells": []}
    found = {(c["operator"], c["D"], c["length"]): c for c in measured["cells"]}
    heads_of_columns = [f"{gpu}, {GPUS[gpu][1]}, predicted" for gpu in GPUS] + ["h200, measured"] * bool(found)
    lines = ["| operator | D / V | length | " + " | ".join(heads_of_columns) + " |",
             "|---|---|---:|" + "---:|" * len(heads_of_columns)]  # fmt: skip
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        experts = {}
        for gpu, arch in EXPERTS.items():
            experts[gpu] = Path(folder) / f"{arch}.tl"
            kernelwright("lift", ROOT / f"kernels/{arch}/attention_fwd.cu", "--out", experts[gpu])
        programs = {(gpu, d, v): scheduled(gpu, d, v, Path(folder)) for gpu in GPUS
                    for d, v in {(d, v) for _, d, v, _, _ in OPERATORS}}  # fmt: skip
        reasons = [f"- {gpu}, D {d} / {v}: {why}" for (gpu, d, v), why in programs.items() if isinstance(why, str)]
        for name, d, v, heads, groups in OPERATORS:
            for length in LENGTHS:
                cells = []
                for gpu in GPUS:
                    program = programs[gpu, d, v]
                    if isinstance(program, str):
                        cells.append("–")
                        continue
                    cell = f"{tflops(program, gpu, heads, groups, length, d, v):.0f}"
                    if gpu in experts and (d, v) == (128, 128):
                        cell += f" ({tflops(experts[gpu], gpu, heads, groups, length, d, v):.0f})"
                    cells.append(cell)
                if one := found.get((name, d, length)):
                    cells.append(f"{one['burst']} burst, {one['sustained']} sustained")
                    errors.append(tflops(programs["h200", d, v], "h200", heads, groups, length, d, v) / one["burst"] - 1)
                lines.append(f"| {name} | {d} / {v} | {length} | " + " | ".join(cells) + " |")
                print(lines[-1], file=sys.stderr)
    where = ""
    if found:
        errors.sort()
        where = (f" on an {measured['gpu']} (driver {measured['driver']}, {options.measured.parent.name}, in a burst and sustained;\n"
                 f"predicted over measured bursts: {errors[0]:+.0%} to {errors[-1]:+.0%}, median {errors[len(errors) // 2]:+.0%})")
    options.page.write_text(HEAD.format(measured=where) + "\n".join(lines) + "\n" + "".join(f"{line}\n" for line in ["", *sorted(reasons)] if reasons))


if __name__ == "__main__":
    main()
