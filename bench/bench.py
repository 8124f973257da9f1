"""Times generated attention kernels beside everything PyTorch offers, on one GPU, in one run.

    python bench/bench.py out/full out/causal out/prefix_lm out/alibi [--out FILE.json]
    python bench/bench.py --markdown FILE.json    # a stored run as a table; needs no GPU

A folder holds kernel.cubin and launch.json and is named after the function that it computes, one of
full, causal, prefix_lm and alibi (else FUNCTION=FOLDER). Kernels for other head dimensions or types
are named full_d64, causal_d192_128, full_f16 and so on (VARIANTS in peers.py); these cases are run
only where a folder or --only names them. Peers: each backend of
scaled_dot_product_attention that runs the case, FlexAttention with its Triton and FLASH backends,
FlashAttention-4's package where flash_attn.cute can be imported, and an 8192^3 cuBLAS product as the
measure of the machine. No network is needed.

How it measures. Every implementation of a case is run once and its output held against fp32 on
sampled rows, then against the others; one that differs is listed as WRONG and not timed. Then five
rounds, each in an order of its own (shuffled from a fixed seed; first those far slower than the
fastest, then the cuBLAS product, then the others, so that these all run on a hot card). An
implementation's turn is 150 ms alone, untimed, and then at least 200 ms between two CUDA events,
without a pause between launches:
after a change of load the card's power limit takes about 0.15 s to settle, so that a shorter timing
measures the neighbour's heat as well, and a heater of another kind (a cuBLAS product, say) sets
another clock than the implementation's own. 200 ms hold 8 launches of anything faster than 25 ms;
slower ones get at least 3. The median of the rounds is the sustained figure, beside it min..max.
The burst figure, what a cool card does, is the median of three timings of 12 ms, each after a pause
(triton.testing.do_bench, which clears the L2 cache before every launch).

The sustained launches find the L2 cache as their predecessor left it: warm, in name. In each of the
six cases of D 128 in bf16 q, k, v and the output hold 67 MB each, 268 MB together, the cache of an H200 50 MB, so
that little of a launch's input is still there when the next one starts.

TFLOP/s count the unmasked entries only: 4 * D operations each, 2 * (D + columns of V) where V has
others.

The work is done by a child process, which writes the JSON after every case. Where it was cut off it
goes on: a case that is in the file, for the same GPU, versions and cubins, is not run again. A child
that dies or hangs takes nothing with it: the implementation at fault is listed as crashed, and a new
child goes on without it.
"""

import argparse
import collections
import datetime
import hashlib
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

from peers import (CASES, KEYS, VARIANTS, Inputs, fault, implementations,  # noqa: E402
                   reference_rows)
from table import CUBLAS, markdown, print_case  # noqa: E402

ROUNDS, BURST_MS = 5, 12
CONTENDER = 1.35         # times the fastest burst: slower ones cool the card for their neighbours
SETTLE_MS, STRETCH_MS, FEWEST_LAUNCHES = 150, 200, 3
BATCH_MS = 10             # launches are queued in batches of this length, two at a time
STEP_LIMIT_SECONDS = 240  # first calls compile for up to a minute
CONTEXT_LOST = 75        # exit status


# ---- measuring

def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:150] if lines else ''}"


class Machine:
    """Time and clocks of the GPU; a test puts its own in the place of this one."""

    device = "cuda"

    def synchronize(self):
        import torch
        torch.cuda.synchronize()

    def leave_if_lost(self):
        """After an illegal access every later call of the process fails: it ends here, and the
        parent starts another one."""
        try:
            self.synchronize()
        except Exception:
            sys.exit(CONTEXT_LOST)

    def now_ms(self):
        return time.perf_counter() * 1000

    def event(self):
        """A point in the queue of launches, after all that were made so far."""
        import torch
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self, event):
        event.synchronize()

    def elapsed_ms(self, first, last):
        return first.elapsed_time(last)

    def burst_ms(self, run):
        from triton.testing import do_bench
        self.synchronize()
        time.sleep(0.25)
        return do_bench(run, warmup=2, rep=BURST_MS, return_mode="median")

    def clocks(self):
        """"1755 of 1980 MHz, 512 of 700 W, 51 C"."""
        query = "clocks.sm,clocks.max.sm,power.draw,power.limit,temperature.gpu"
        try:
            text = subprocess.run(["nvidia-smi", "-i", "0", f"--query-gpu={query}",
                                   "--format=csv,noheader,nounits"],
                                  capture_output=True, text=True, timeout=20).stdout
            now, most, power, limit, heat = [x.strip() for x in text.splitlines()[0].split(",")]
            return f"{now} of {most} MHz, {power} of {limit} W, {heat} C"
        except (OSError, subprocess.SubprocessError, IndexError, ValueError) as error:
            return f"unknown ({first_line(error)})"

    def driver(self):
        try:
            return subprocess.run(["nvidia-smi", "-i", "0", "--query-gpu=driver_version",
                                   "--format=csv,noheader"],
                                  capture_output=True, text=True, timeout=20).stdout.strip()
        except (OSError, subprocess.SubprocessError) as error:
            return f"unknown ({first_line(error)})"

    def environment(self):
        import importlib.metadata
        import torch
        versions = {"gpu": torch.cuda.get_device_name(), "driver": self.driver(),
                    "torch": torch.__version__, "cuda": torch.version.cuda}
        for package in ("flash-attn-4", "nvidia-cutlass-dsl", "triton"):
            try:
                versions[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                versions[package] = "absent"
        return versions


def prepare(case, makers, banned, machine, mark):
    """Runs every implementation once. Gives the right ones as (name, run), and a row for each other."""
    import torch
    inputs = Inputs(case, machine.device)
    rows, expected = reference_rows(inputs)
    good, table, consensus = [], {}, None
    for name, make in makers:
        if name in banned:
            table[name] = {"status": banned[name]}
            continue
        mark(name)
        try:
            if hasattr(torch, "_dynamo"):
                torch._dynamo.reset()
            run = make(inputs)
            output = run()
            machine.synchronize()
            wrong = fault(output, rows, expected, consensus)
            if wrong:
                table[name] = {"status": "WRONG: " + wrong}
                continue
            consensus = output if consensus is None else consensus
            good.append((name, run))
        except Exception as error:  # a peer's failure is a row of the table
            table[name] = {"status": "failed: " + first_line(error)}
            machine.leave_if_lost()
    return good, table


def sustained_ms(run, machine):
    """Milliseconds a launch, at the clock that this load alone settles at.

    The queue never runs dry, which would cool the card, and never grows long, so that the host's
    clock tells how far the device is: of two queued batches, the older is waited for."""
    started = machine.now_ms()
    run()
    machine.synchronize()
    batch = max(1, int(BATCH_MS / max(machine.now_ms() - started, 1e-3)))
    pending = collections.deque()

    def stretch(milliseconds, fewest):
        started, first, launches = machine.now_ms(), machine.event(), 0
        while launches < fewest or machine.now_ms() - started < milliseconds:
            for _ in range(batch):
                run()
            launches += batch
            pending.append(machine.event())
            if len(pending) == 2:
                machine.wait(pending.popleft())
        return first, pending[-1], launches

    stretch(SETTLE_MS, 1)
    first, last, launches = stretch(STRETCH_MS, FEWEST_LAUNCHES)
    machine.wait(last)
    return machine.elapsed_ms(first, last) / launches


def by_heat(good, times):
    """The order of a round: what is far slower than the fastest, the cuBLAS product, the others.

    Slow implementations cool the card, and its temperature lasts longer than a turn; whoever came
    next would have the better clock. So the others follow each other, behind the hottest."""
    bursts = [times[name]["burst_ms"] for name, _ in good
              if name != CUBLAS and times[name]["burst_ms"]]

    def place(turn):
        name, burst = turn[0], times[turn[0]]["burst_ms"]
        return 1 if name == CUBLAS else 2 if burst and burst <= CONTENDER * min(bursts) else 0
    return [[turn for turn in good if place(turn) == n] for n in range(3)]


def measure(good, machine, mark):
    """{name: {"rounds_ms", "burst_ms"}}. The rounds are interleaved; one that fails drops out."""
    times = {name: {"status": "ok", "rounds_ms": [], "burst_ms": None} for name, _ in good}

    def timed(name, measurement):
        mark(name)
        try:
            return measurement()
        except Exception as error:
            times[name]["status"] = "failed: " + first_line(error)
            machine.leave_if_lost()
            return None

    for name, run in good:
        burst = [timed(name, lambda: machine.burst_ms(run)) for _ in range(3)]
        times[name]["burst_ms"] = statistics.median(burst) if None not in burst else None
    groups, shuffle = by_heat(good, times), random.Random(0).shuffle
    for _ in range(ROUNDS):
        for group in groups:
            shuffle(group)
        for name, run in itertools.chain(*groups):
            if times[name]["status"] == "ok":
                times[name]["rounds_ms"].append(timed(name, lambda: sustained_ms(run, machine)))
    return times


def measure_case(case, makers, banned, machine, mark):
    import torch
    torch.set_grad_enabled(False)
    before = machine.clocks()
    good, table = prepare(case, makers, banned, machine, mark)
    n = 8192 if machine.device == "cuda" else 64
    a, b = (torch.randn(n, n, device=machine.device).to(torch.bfloat16) for _ in range(2))
    product = (CUBLAS, lambda: a @ b)
    flop = {name: case.flop for name, _ in good} | {product[0]: 2 * n ** 3}
    for name, row in measure([product] + good, machine, mark).items():
        if row["status"] == "ok":
            row["tflops"] = flop[name] / statistics.median(row["rounds_ms"]) / 1e9
            row["burst_tflops"] = flop[name] / row["burst_ms"] / 1e9
            row["spread"] = [flop[name] / t / 1e9 for t in
                             (max(row["rounds_ms"]), min(row["rounds_ms"]))]
        table[name] = row
    names = [product[0]] + [name for name, _ in makers]
    return {"rows": {name: table[name] for name in names},
            "clocks": {"before": before, "after": machine.clocks()},
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}


# ---- child and parent

def write_json(path, data):
    part = Path(f"{path}.part")
    part.write_text(json.dumps(data, indent=1))
    part.replace(path)


def folders_by_function(arguments):
    """{function: [(label, folder)]}; the label tells several folders of one function apart."""
    folders = {}
    for argument in arguments:
        function, _, folder = argument.rpartition("=")
        function = function or Path(folder).name
        if function not in KEYS:
            sys.exit(f"{argument}: '{function}' is none of {', '.join(KEYS)}; "
                     "say FUNCTION=FOLDER")
        for file in ("kernel.cubin", "launch.json"):
            if not (Path(folder) / file).exists():
                sys.exit(f"{folder} has no {file}")
        folders.setdefault(function, []).append(folder)
    return {function: [("" if len(list_) == 1 else folder, folder) for folder in list_]
            for function, list_ in folders.items()}


def signature(environment, folders):
    """What a stored result is valid for."""
    digest = hashlib.sha256(json.dumps(environment, sort_keys=True).encode())
    for _, folder in folders:
        for file in ("kernel.cubin", "launch.json"):
            digest.update((Path(folder) / file).read_bytes())
    return digest.hexdigest()[:16]


def selected(only, folders):
    """Cases to run: those that --only names, or the six and what else there is a folder for."""
    if only:
        return [case for case in CASES + VARIANTS if case.key in only]
    return CASES + [case for case in VARIANTS if case.key in folders]


def child(arguments, machine=None):
    """Runs every case that the JSON lacks. The marker file says what is being tried."""
    machine = machine or Machine()
    path, folders = Path(arguments.out), folders_by_function(arguments.folders)
    data = json.loads(path.read_text()) if path.exists() else {"cases": {}}
    data["environment"] = environment = machine.environment()
    for case in selected(arguments.only, folders):
        mine = folders.get(case.key, [])
        key = signature(environment, mine)
        known = data["cases"].get(case.name)
        if not known or known["signature"] != key:
            banned = json.loads(Path(arguments.banned).read_text()).get(case.name, {})

            def mark(implementation):
                write_json(arguments.marker, {"case": case.name, "implementation": implementation})
            result = measure_case(case, implementations(case.function, mine), banned, machine, mark)
            data["cases"][case.name] = {"signature": key, **result}
            write_json(path, data)
        print_case(case.name, data["cases"][case.name])


def run_child(arguments, marker, banned):
    """Exit status of one child, or None when it made no step within the limit and was killed."""
    process = subprocess.Popen([sys.executable, __file__, *arguments.folders, "--out", arguments.out,
                                "--marker", marker, "--banned", banned,
                                *[x for f in arguments.only or [] for x in ("--only", f)]])
    started = time.time()
    while True:
        try:
            return process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            step = os.path.getmtime(marker) if os.path.exists(marker) else started
            if time.time() - max(step, started) > STEP_LIMIT_SECONDS:
                process.kill()
                process.wait()
                return None


def parent(arguments):
    folders_by_function(arguments.folders)
    Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
    banned = {}
    with tempfile.TemporaryDirectory() as scratch:
        marker, list_ = f"{scratch}/marker.json", f"{scratch}/banned.json"
        while True:
            write_json(list_, banned)
            Path(marker).unlink(missing_ok=True)
            status = run_child(arguments, marker, list_)
            if status == 0:
                print(f"\nwritten: {arguments.out}")
                return 0
            if status == 1 or not Path(marker).exists():
                return 1  # a traceback of our own, or no GPU: another child would end alike
            tried = json.loads(Path(marker).read_text())
            why = "hung" if status is None else f"crashed (exit {status})"
            print(f"{tried['case']}: {tried['implementation']} {why}; going on without it",
                  flush=True)
            banned.setdefault(tried["case"], {})[tried["implementation"]] = why


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folders", nargs="*", help="FOLDER or FUNCTION=FOLDER")
    parser.add_argument("--out", default=str(ROOT / "bench/results/bench.json"))
    parser.add_argument("--markdown", metavar="FILE.json",
                        help="print a stored run as a table for a README; needs no GPU")
    parser.add_argument("--only", action="append", choices=KEYS, metavar="FUNCTION",
                        help="cases of this function")
    parser.add_argument("--marker", help=argparse.SUPPRESS)
    parser.add_argument("--banned", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.markdown:
        print(markdown(json.loads(Path(arguments.markdown).read_text())))
        return 0
    if arguments.marker:
        return child(arguments)
    return parent(arguments)


if __name__ == "__main__":
    sys.exit(main())
