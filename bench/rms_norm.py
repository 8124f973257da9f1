"""RMSNorm's kernels beside a copy of the same bytes and beside PyTorch, in one run on one GPU:

    python bench/rms_norm.py FOLDER... [--rows 16384,65536] [--json FILE]

A folder is what `kernelwright make` wrote for `y = rms_norm(x)` or, with `residual` among its inputs, for
`h = x + residual; y = rms_norm(h)`; its columns are the kernel's. On each number of rows every kernel is held against
fp64 (a row's error is at most what rounding the right row to the type makes, and 5 % more; h is x + residual, rounded), and
one that is wrong ends the run. Then the kernel, `copy_` of as many bytes, `F.rms_norm` as it is and compiled take turns in
rounds, each round in an order of its own. What counts is the median of sustained turns (versus.py).

Bytes: each input and output once. The weights and inputs are random; eps is 1e-6.
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
from versus import sustained_ms  # noqa: E402

ROUNDS, EPS, CHECKED = 5, 1e-6, 512
ROOM = 1.05  # of the error that rounding alone makes


def right_rows(inputs, weight, rows):
    """h and y of these rows in fp64: h is what the sum of the inputs rounds to."""
    x = [t[:, :, rows] for t in inputs]
    h = x[0] if len(x) == 1 else (x[0].float() + x[1].float()).to(x[0].dtype)
    h = h.double()
    return h, h * (h.square().mean(-1, keepdim=True) + EPS).rsqrt() * weight.double()


def worst_row(got, right):
    return ((got.double() - right).norm(dim=-1) / right.norm(dim=-1)).max().item()


def judge(folder, inputs, weight, results, torch):
    rows = inputs[0].shape[2]
    picked = torch.unique(torch.cat([torch.arange(min(rows, 64)), torch.arange(max(0, rows - 64), rows),
                                     torch.randint(0, rows, (CHECKED,))])).cuda()
    h, y = right_rows(inputs, weight, picked)
    error, due = worst_row(results["y"][:, :, picked], y), worst_row(y.to(inputs[0].dtype), y)
    if not error <= ROOM * due or results["y"].isnan().any():
        raise SystemExit(f"{folder}: a row of y is {error:.3g} from fp64, rounding alone makes {due:.3g}")
    if "h" in results and not torch.equal(results["h"][:, :, picked].double(), h):
        raise SystemExit(f"{folder}: h is not x + residual, rounded")
    return error, due


def implementations(kernel, folder, inputs, weight, torch):
    import torch.nn.functional as F
    columns = inputs[0].shape[3]
    named = {"x": inputs[0], "weight": weight} | ({"residual": inputs[1]} if len(inputs) == 2 else {})
    launch = kernel.prepare(**named)

    def plain(x, residual=None):
        h = x if residual is None else x + residual
        y = F.rms_norm(h, (columns,), weight, EPS)
        return y if residual is None else (y, h)

    output = launch()
    torch.cuda.synchronize()
    results = dict(zip(kernel.outputs, [output] if torch.is_tensor(output) else output))
    error = judge(folder, inputs, weight, results, torch)
    source = torch.cat([t.flatten() for t in inputs])
    target = torch.empty_like(source)
    compiled = torch.compile(plain, dynamic=False)
    compiled(*inputs)
    return error, {str(folder): launch, "copy_": lambda: target.copy_(source), "F.rms_norm": lambda: plain(*inputs),
                   "F.rms_norm compiled": lambda: compiled(*inputs)}


def main():
    import torch
    from kernelwright.runtime.launch import DTYPES, Kernel
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--rows", default="1024,16384,65536")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    machine, table = Machine(), []
    print(f"{machine.environment()}\n{machine.clocks()}")
    for folder in options.folders:
        kernel = Kernel(folder)
        x = kernel._arguments["x"]
        columns, dtype = x["dims"][3], DTYPES[x["dtype"]]
        for rows in map(int, options.rows.split(",")):
            inputs = [torch.randn(1, 1, rows, columns, device="cuda").to(dtype)
                      for _ in range(2 if "residual" in kernel.inputs else 1)]
            weight = (1 + 0.1 * torch.randn(columns, device="cuda")).to(dtype)
            (error, due), runs = implementations(kernel, folder, inputs, weight, torch)
            moved = 2 * sum(t.numel() * t.element_size() for t in inputs) + weight.numel() * weight.element_size()
            times = {name: [] for name in runs}
            for n in range(ROUNDS):
                order = list(runs)
                random.Random(n).shuffle(order)
                for name in order:
                    times[name].append(sustained_ms(runs[name], torch))
            middle = {name: statistics.median(ms) for name, ms in times.items()}
            print(f"{rows} x {columns}, {moved / 1e6:.0f} MB; worst row {error:.2e}, rounding alone {due:.2e}")
            for name, ms in middle.items():
                print(f"  {name[-44:]:44} {ms * 1e3:9.2f} us {moved / ms / 1e9:6.3f} TB/s {middle['copy_'] / ms:6.3f} of the copy "
                      f"±{(max(times[name]) - min(times[name])) / ms / 2:5.1%}", flush=True)
            table.append({"folder": str(folder), "rows": rows, "columns": columns, "ms": times})
            torch._dynamo.reset()
    if options.json:
        options.json.write_text(json.dumps({"environment": machine.environment(), "table": table}))


if __name__ == "__main__":
    main()
