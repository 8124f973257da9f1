#!/usr/bin/env python3
"""How long a process waits for a compiled function, beyond PyTorch's import and CUDA's own start.

    python bench/start_time.py

Starts processes of its own, several, and prints the least of each part: a function that the cache
holds needs no capture, no check and no NVRTC. What is not in the cache is made first, and that time is
printed too. Without a GPU nothing is launched, and the target is sm_90a."""

import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
REPEATS = 5


def child():
    begun = time.perf_counter()
    import torch
    imported = time.perf_counter()
    gpu = torch.cuda.is_available()  # starts the driver
    device = "cuda" if gpu else "cpu"
    asked = time.perf_counter()
    import kernelwright
    kernelwright.compile
    ours_from = time.perf_counter()
    import operator_functions as functions  # a table on the CPU: the user's own work
    function, values = functions.examples(device)["causal"]
    if gpu:
        (values[0] @ values[0].mT).softmax(-1)  # CUDA's own start, and its first kernels
        torch.cuda.synchronize()
    ready = time.perf_counter()
    fast = kernelwright.compile(function, values, target=None if gpu else "sm_90a")
    compiled = time.perf_counter()
    if gpu:
        fast(*values)
        torch.cuda.synchronize()
    launched = time.perf_counter()
    print(json.dumps({"PyTorch": imported - begun, "our imports": ours_from - asked,
                      "the function and CUDA's start": ready - ours_from + asked - imported, "compile": compiled - ready,
                      "first call": launched - compiled, "cold": "kernelwright.compiling.cache_miss" in sys.modules}))


def run():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), str(ROOT / "tests/gpu")])}
    done = subprocess.run([sys.executable, __file__, "--child"], env=environment, text=True,
                          stdout=subprocess.PIPE, timeout=500)
    if done.returncode:
        sys.exit(done.returncode)
    return json.loads(done.stdout.splitlines()[-1])


def show(name, parts):
    ours = sum(parts[part] for part in ("our imports", "compile", "first call"))
    print(f"{name:5} " + ", ".join(f"{part} {parts[part] * 1e3:.0f} ms" for part in parts if part != "cold")
          + f"; ours in all {ours * 1e3:.0f} ms")


def main():
    first = run()
    if first["cold"]:
        show("cold", first)
    runs = [run() for _ in range(REPEATS)]
    assert not any(parts["cold"] for parts in runs)
    show("warm", {part: min(r[part] for r in runs) for part in runs[0]})


if __name__ == "__main__":
    child() if "--child" in sys.argv else main()
