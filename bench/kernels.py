"""Makes the kernels that the benchmark's cases name, on a machine without a GPU.

    python bench/kernels.py [KEY...] [--out out] [--jobs 2]

A KEY is that of a case: full, causal_d192_128, full_f16, full_ampere; all without one. Each becomes
OUT/KEY by `kernelwright make`, from examples/ where D 128 in bf16 is asked for, else from a
specification that is written to OUT/specs/KEY.py. About a quarter of a minute each. Then, where the
GPU is: python bench/bench.py OUT. Exit status 1 where one could not be made.
"""

import argparse
import concurrent.futures
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from cases import CASES, KEYS  # noqa: E402
from peers import DTYPES  # noqa: E402

SPEC = '''"""{title}, head dimension {dims}, {dtype}: written by bench/kernels.py."""

import torch


def {name}(q, k, v):
    """q [B, H, M, {d}], k [B, G, N, {d}], v [B, G, N, {v}]; any B, M and N, H a multiple of G."""
    scores = q @ k.repeat_interleave(q.shape[1] // k.shape[1], dim=1).mT * q.shape[3] ** -0.5
{mask}    return scores.softmax(-1) @ v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)


def example_inputs():
    q = torch.randn(2, 8, 256, {d}, dtype=torch.{dtype})
    k = torch.randn(2, 2, 256, {d}, dtype=torch.{dtype})
    v = torch.randn(2, 2, 256, {v}, dtype=torch.{dtype})
    return q, k, v
'''
CAUSAL = '''    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    scores = scores.masked_fill(j > i, -torch.inf)
'''


def specification(case):
    """The text of a case's own specification, None where an example says the same."""
    if (case.dim, case.columns, case.dtype) == (128, 128, "bf16"):
        return None
    if case.function not in ("full", "causal"):
        raise ValueError(f"{case.key}: no specification is written for {case.function}")
    dims = f"{case.dim}" + (f" and {case.columns} of v" if case.columns != case.dim else "")
    return SPEC.format(title=case.function.capitalize() + " attention", name=case.function,
                       dims=dims, d=case.dim, v=case.columns, dtype=DTYPES[case.dtype],
                       mask=CAUSAL if case.function == "causal" else "")


def command(case, out):
    """The call of `kernelwright make`; writes the specification if it needs one."""
    spec, text = ROOT / f"examples/{case.function}.py", specification(case)
    if text:
        spec = out / f"specs/{case.key}.py"
        spec.parent.mkdir(parents=True, exist_ok=True)
        spec.write_text(text)
    # sm_90 is Hopper without what is Hopper's alone: an Ampere-class kernel that runs there.
    return [str(ROOT / "build/kernelwright"), "make", str(spec), "--out", str(out / case.key),
            "--target", "sm_90" if case.ampere else "sm_90a"]


def make(case, out):
    started = time.monotonic()
    run = subprocess.run(command(case, out), capture_output=True, text=True)
    said = run.stderr.strip().splitlines() or ["said nothing"]
    built = next((line for line in said if line.startswith("build ")), said[-1])
    text = built if run.returncode == 0 else "\n  ".join(["NOT made", *said])
    print(f"{case.key:16} {text}  [{time.monotonic() - started:.0f} s in all]", flush=True)
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("keys", nargs="*", metavar="KEY", help=", ".join(KEYS))
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    if unknown := set(arguments.keys) - set(KEYS):
        parser.error(f"{', '.join(sorted(unknown))}: none of {', '.join(KEYS)}")
    cases = {case.key: case for case in CASES if case.key in (arguments.keys or KEYS)}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        made = list(pool.map(lambda case: make(case, arguments.out), cases.values()))
    return 0 if all(made) else 1


if __name__ == "__main__":
    sys.exit(main())
