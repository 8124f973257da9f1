"""Holds predicted times against measured ones: python bench/predict.py BENCH.json OUT [--gpu h200]

BENCH.json is what bench/bench.py wrote; OUT the folder of the kernels that it timed, one a function
(out/full/kernel.tl). Each case of ours is predicted by `kernelwright timeline`, rested beside the burst
time and sustained beside the median round. Cases that the GPU's file was fitted to (gpus/h200.json)
are marked, and left out of the median error.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FITTED = ("full B1 H16 S16384 D128", "full B1 H32 S16384 D64", "alibi B2 H16 S8192 D128")
CASE = re.compile(r"(?P<function>\w+) B(?P<B>\d+) H(?P<H>\d+)(/(?P<G>\d+))? S(?P<M>\d+) (?P<rest>.*)")


def folder(function, rest):
    """'causal', 'D192/128 f16 Ampere' -> causal_d192_128_f16_ampere, as bench/cases.py names it."""
    words = [w for w in rest.lower().replace("/", "_").split() if w not in ("d128", "graph")]
    return "_".join([function, *words])


def predict(program, shape, gpu, rested):
    command = [str(ROOT / "build/kernelwright"), "timeline", str(program), "--gpu", gpu,
               "--shape", shape, "--json", *["--rested"] * rested]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{program}, {shape}:\n{run.stdout}{run.stderr}")
    return json.loads(run.stdout)["milliseconds"]


def rows(bench, out, gpu):
    """(case, rested or sustained, predicted ms, measured ms) of every case that has a kernel."""
    for name, case in bench["cases"].items():
        match, ours = CASE.fullmatch(name), case["rows"].get("ours", {})
        if not match or ours.get("status") != "ok":
            continue
        program = out / folder(match["function"], match["rest"]) / "kernel.tl"
        if not program.exists():
            print(f"{name}: no {program}", file=sys.stderr)
            continue
        shape = ",".join(f"{k}={match[k]}" for k in "BHGM" if match[k])
        if match["function"] == "prefix_lm":
            shape += f",prefix={int(match['M']) // 8}"
        for rested, measured in ((True, ours["burst_ms"]),
                                 (False, statistics.median(ours["rounds_ms"]))):
            yield (name, "rested" if rested else "sustained",
                   predict(program, shape, gpu, rested), measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("bench", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--gpu", default="h200")
    arguments = parser.parse_args()
    errors = []
    print(f"{'case':34} {'clock':9} {'predicted':>10} {'measured':>9} {'error':>7}")
    for name, heat, predicted, measured in rows(json.loads(arguments.bench.read_text()),
                                                arguments.out, arguments.gpu):
        error, fitted = predicted / measured - 1, name in FITTED
        errors += [] if fitted else [abs(error)]
        print(f"{name:34} {heat:9} {predicted:7.3f} ms {measured:6.3f} ms {100 * error:+6.1f} %"
              + "  (fitted)" * fitted)
    if not errors:
        raise SystemExit("no case to hold against: is OUT the folder of the kernels?")
    print(f"median error without fitted cases: {100 * statistics.median(errors):.1f} % of "
          f"{len(errors)} times, at most {100 * max(errors):.1f} %")


if __name__ == "__main__":
    main()
