#!/usr/bin/env python3
"""Proves several kernels on this machine's GPU and prints one table.

    scripts/prove_all.py out/* [--jobs N] [--limit SECONDS] [--prove PATH]

A FOLDER is what `kernelwright make` wrote. Each is kernelwright-prove's, which says what a proof is
(docs/evidence.md); here they run beside each other, since half of a proof is drawing inputs and
comparing outputs on the CPU. All share one GPU, so a time of a launch would mean nothing and none is
printed. A line a kernel, in the order given: its verdict; the cases that ran; rows that were compared;
the worst error over the accepted one; seconds from beginning to end. Under it stands what was found
first; all of it is in kernelwright-prove's own report.

Exit status 0: every kernel holds; 1: one does not, or its proof came to no verdict; 2: an argument is at
fault.
"""

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import time
from pathlib import Path

PROVE = Path(__file__).resolve().parents[1] / "build/kernelwright-prove"
VERDICTS = {0: "holds", 1: "refuted", 2: "bad_input", 3: "inconclusive", 70: "own_fault"}
SHOWN = 3  # findings of a kernel
COLUMNS = "{:>12} {:>6} {:>7} {:>15} {:>8}"


def prove(folder, prover, limit):
    """(folder, verdict, report or {}, its standard error, seconds)."""
    started = time.monotonic()
    run = subprocess.run([prover, folder, "--json", "--limit", str(limit)], text=True,
                         capture_output=True)
    try:
        report = json.loads(run.stdout)
    except ValueError:
        report = {}
    verdict = VERDICTS.get(run.returncode, f"exit {run.returncode}")
    if verdict == "holds" and report.get("verdict") != "holds":
        verdict = "no report"
    return folder, verdict, report, run.stderr, time.monotonic() - started


def worst_share(cases):
    """The worst error over what is accepted; None is infinite in a report, and is in the table."""
    shares = [golden["worst_ratio"] for case in cases for golden in case["goldens"]]
    if None in shares:
        return "inf"
    return f"{max(shares):.2f}" if shares else "-"


def rows_of(cases):
    """Goldens of one case are of the same rows."""
    return sum(max((golden["rows"] for golden in case["goldens"]), default=0) for case in cases)


def findings_of(report, said):
    """Of each case that does not hold its first finding; else what the prover said."""
    found = [f"{case['name']}: [{case['findings'][0]['code']}] {case['findings'][0]['message']}"
             for case in report.get("cases", []) if case["findings"]]
    found += [f"[{d['code']}] {d['message']}" for d in report.get("failed", [])]
    if report.get("not_run"):
        found.append(f"{report['not_run']} cases were not run")
    found = found or ([] if report else said.strip().splitlines())
    return found[:SHOWN] + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="what kernelwright make wrote")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="proofs at a time")
    parser.add_argument("--limit", type=float, default=120, help="seconds a case may take")
    parser.add_argument("--prove", default=os.environ.get("PROVE", PROVE), help="kernelwright-prove")
    asked = parser.parse_args()
    if asked.jobs < 1:
        parser.error(f"--jobs is {asked.jobs}: at least one proof runs at a time")
    if not os.access(asked.prove, os.X_OK):
        parser.error(f"{asked.prove} is no program: build it, or say --prove")
    for folder in asked.folders:
        if not (Path(folder) / "prove.json").exists():
            parser.error(f"{folder} has no prove.json: kernelwright make writes one")

    started, holds, doubts = time.monotonic(), 0, []
    width = max(len("kernel"), *(len(folder) for folder in asked.folders))
    print("kernel".ljust(width), COLUMNS.format("verdict", "cases", "rows", "error/accepted", "seconds"))
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for folder, verdict, report, said, seconds in pool.map(
                lambda folder: prove(folder, asked.prove, asked.limit), asked.folders):
            cases = report.get("cases", [])
            print(folder.ljust(width), COLUMNS.format(verdict, len(cases), rows_of(cases),
                                                      worst_share(cases), f"{seconds:.1f}"))
            for finding in [] if verdict == "holds" else findings_of(report, said):
                print(f"  {finding}")
            sys.stdout.flush()
            holds += verdict == "holds"
            if report.get("doubt") and report["doubt"] not in doubts:
                doubts.append(report["doubt"])
    for doubt in doubts:
        print(doubt.strip())
    print(f"{holds} of {len(asked.folders)} kernels hold; {time.monotonic() - started:.1f} s, "
          f"{asked.jobs} at a time")
    return 0 if holds == len(asked.folders) else 1


if __name__ == "__main__":
    sys.exit(main())
