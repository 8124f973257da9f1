"""Makes the kernels that the benchmark's cases name, on a machine without a GPU.

    python bench/kernels.py [KEY...] [--rows variants] [--out out] [--jobs 2] [--check quick]

A KEY is that of a case: full, causal_d192_128, full_f16, full_ampere; all without one. --rows names
another table of bench.py's. Each becomes OUT/KEY by `kernelwright make`, from examples/ where an
example's text is what is asked for, else from a specification that is written to OUT/specs/KEY.py.
About a quarter of a minute each. Then, where the GPU is: python bench/bench.py OUT. Exit status 1 where
one could not be made.
"""

import argparse
import concurrent.futures
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

from peers import DTYPES  # noqa: E402
from variants.rows import ROWS, Row  # noqa: E402

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
    if isinstance(case, Row):
        return None if case.spec else case.text
    if (case.dim, case.columns, case.dtype) == (128, 128, "bf16"):
        return None
    if case.function not in ("full", "causal"):
        raise ValueError(f"{case.key}: no specification is written for {case.function}")
    dims = f"{case.dim}" + (f" and {case.columns} of v" if case.columns != case.dim else "")
    return SPEC.format(title=case.function.capitalize() + " attention", name=case.function,
                       dims=dims, d=case.dim, v=case.columns, dtype=DTYPES[case.dtype],
                       mask=CAUSAL if case.function == "causal" else "")


def command(case, out, check="default"):
    """The call of `kernelwright make`; writes the specification if it needs one."""
    name = case.example if isinstance(case, Row) else case.function
    spec, text = ROOT / f"examples/{name}.py", specification(case)
    if text:
        spec = out / f"specs/{case.key}.py"
        spec.parent.mkdir(parents=True, exist_ok=True)
        spec.write_text(text)
    # sm_90 is Hopper without what is Hopper's alone: an Ampere-class kernel that runs there.
    return [str(ROOT / "build/kernelwright"), "make", str(spec), "--out", str(out / case.key),
            "--target", "sm_90" if case.ampere else "sm_90a", "--check", check]


def make(case, out, check):
    started = time.monotonic()
    run = subprocess.run(command(case, out, check), capture_output=True, text=True)
    said = run.stderr.strip().splitlines() or ["said nothing"]
    built = next((line for line in reversed(said) if line.startswith("build ")), said[-1])
    text = built if run.returncode == 0 else "\n  ".join(["NOT made", *said])
    print(f"{case.key:16} {text}  [{time.monotonic() - started:.0f} s in all]", flush=True)
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("keys", nargs="*", metavar="KEY")
    parser.add_argument("--rows", choices=ROWS, default="attention")
    parser.add_argument("--out", type=Path, default=ROOT / "out")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", default="default", help="as of `kernelwright make`")
    arguments = parser.parse_args()
    every = {case.key: case for case in ROWS[arguments.rows]}
    if unknown := set(arguments.keys) - set(every):
        parser.error(f"{', '.join(sorted(unknown))}: none of {', '.join(every)}")
    cases = [every[key] for key in arguments.keys or every]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        made = list(pool.map(lambda case: make(case, arguments.out, arguments.check), cases))
    return 0 if all(made) else 1


if __name__ == "__main__":
    sys.exit(main())
