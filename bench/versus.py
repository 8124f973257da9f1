"""Kernels of one function side by side, in one run on one GPU:

    python bench/versus.py FOLDER FOLDER... --sizes B=4,H=16,G=16,M=4096,N=4096 [--causal] [--json FILE]

A folder is what `kernelwright make` wrote. All of them get the same random inputs, by name, or in their order where their
names differ; their outputs are held against the first one's, and one that differs is wrong and ends the run. Then they take
turns in rounds, each round in an order of its own, a cuBLAS product among them. A burst is 12 ms on a rested card, with the
L2 cache cleared before each launch; sustained is the median of turns of 200 ms after 150 ms untimed (measuring.py says why).
The ratios are to the first folder.

Operations: an attention's four for each unmasked entry and column (D + V, twice), half of them with --causal; a product's
two for each entry and K. Beside products stands what cuBLAS takes for the same one alone. Bytes: each tensor's once, inputs
and outputs, which is what a decode waits for. Integer inputs, lengths that is, are the number of keys; numbers beside the
tensors, scales that is, are near one.
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

ROUNDS, SETTLE_MS, TURN_MS = 5, 150, 200
TOLERANCE = 0.02  # of the greatest value: two right kernels differ by roundings


def inputs_of(kernel, sizes, torch):
    """Random tensors for the kernel's inputs, in its own order of dimensions."""
    from kernelwright.runtime.launch import DTYPES
    generator = torch.Generator("cuda").manual_seed(1)
    made = []
    for argument in map(kernel._arguments.get, kernel.inputs):
        shape = [sizes[d] if isinstance(d, str) else d for d in argument["dims"]]
        dtype = DTYPES[argument["dtype"]]
        values = torch.randn(shape, device="cuda", generator=generator)
        made.append(values.to(dtype) if dtype.is_floating_point else torch.full_like(values, sizes["N"] - 1, dtype=dtype))
    return made


def numbers_of(folder):
    """A value for each number that the kernel takes beside its tensors, by name: scales, which are near one."""
    plan = json.loads((folder / "launch.json").read_text())
    names = [a["name"] for a in plan["arguments"] if a["kind"] == "scalar" and "value" not in a]
    return {name: 0.5 + (n + 1) / (len(names) + 1) for n, name in enumerate(names)}


def is_product(folder):
    return json.loads((folder / "launch.json").read_text())["entry"] == "gemm"


def operations(product, tensors, outputs, causal):
    a, b = tensors[0], tensors[1]
    of_entry = a.shape[0] * a.shape[1] * a.shape[2]
    if product:
        other = b.shape[3] if b.shape[2] == a.shape[3] else b.shape[2]
        return 2 * of_entry * a.shape[3] * other
    columns = a.shape[3] + next(o for o in outputs if o.dim() == 4).shape[3]
    return 2 * of_entry * b.shape[2] * columns / (2 if causal else 1)


def sustained_ms(run, torch):
    def stretch(milliseconds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        launches, spent = 8, 0.0
        while True:
            start.record()
            for _ in range(launches):
                run()
            end.record()
            end.synchronize()
            spent = start.elapsed_time(end)
            if spent >= milliseconds:
                return spent / launches
            launches = max(launches * 2, int(launches * milliseconds / max(spent, 0.01) * 1.1))
    stretch(SETTLE_MS)
    return stretch(TURN_MS)


def main():
    import torch
    from kernelwright.runtime.launch import Kernel
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--sizes", required=True)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sizes = {name: int(value) for name, value in (part.split("=") for part in options.sizes.split(","))}
    machine, runs, first = Machine(), {}, None
    product = is_product(options.folders[0])
    model = Kernel(options.folders[0])
    names, tensors, outputs = model.inputs, inputs_of(model, sizes, torch), None
    for folder in options.folders:
        kernel = Kernel(folder)
        given = dict(zip(names if set(names) == set(kernel.inputs) else kernel.inputs, tensors))
        own = dict(zip(kernel.inputs, inputs_of(kernel, sizes, torch)))
        launch = kernel.prepare(**{name: given[name].to(t.dtype) for name, t in own.items()}, **numbers_of(folder))
        output = launch()
        results = dict(zip(kernel.outputs, [output] if torch.is_tensor(output) else output))
        outputs = outputs or results
        output = results.get(next(iter(outputs)), next(iter(results.values())))
        torch.cuda.synchronize()
        first = output.float() if first is None else first
        far = (output.float() - first).abs().max() / first.abs().max()
        if not far <= TOLERANCE:
            raise SystemExit(f"{folder}: differs from {options.folders[0]} by {far:.3g} of the greatest value")
        runs[str(folder)] = launch
    side = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    runs["cuBLAS 8192^3"] = lambda: side @ side.mT
    if product:
        a, b = tensors
        runs["cuBLAS"] = (lambda: a @ b) if b.shape[2] == a.shape[3] else (lambda: a @ b.mT)
    times = {name: ([], []) for name in runs}
    order = list(runs)
    for round_number in range(ROUNDS):
        random.Random(round_number).shuffle(order)
        for name in order:
            times[name][0].append(machine.burst_ms(runs[name]))
            times[name][1].append(sustained_ms(runs[name], torch))
    print(f"{machine.environment()}\n{machine.clocks()}\n{options.sizes}{' causal' * options.causal}")
    print(f"{'':44} {'burst':>37} {'sustained':>37}")
    work, best = operations(product, tensors, outputs.values(), options.causal), str(options.folders[0])
    moved = sum(t.numel() * t.element_size() for t in [*tensors, *outputs.values()])
    for name, both in times.items():
        of = 2 * 8192**3 if name.endswith("^3") else work
        cells = []
        for ms, theirs in zip(both, times[best]):
            middle = statistics.median(ms)
            cells.append(f"{of / middle / 1e9:7.1f} TFLOP/s {'' if name.endswith('^3') else f'{moved / middle / 1e9:5.2f} TB/s':10} "
                         f"{statistics.median(theirs) / middle:6.3f} ±{(max(ms) - min(ms)) / middle / 2:5.1%}")
        print(f"{name[-44:]:44} " + " ".join(cells))
    if options.json:
        options.json.write_text(json.dumps({"sizes": sizes, "environment": machine.environment(), "ms": times}))


if __name__ == "__main__":
    main()
