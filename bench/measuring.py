"""One case of the benchmark on this machine: who is right, and then how fast each is.

Every implementation is run once and its output held against fp32 on sampled rows, then against the
others; one that differs is WRONG and not timed. The others take turns in rounds, each in an order
of its own (shuffled from a fixed seed).

A sustained turn is 150 ms alone, untimed, and then at least 200 ms between two CUDA events, without
a pause between launches: after a change of load the card's power limit takes about 0.15 s to settle,
so that a shorter timing measures the neighbour's heat as well, and a heater of another kind (a cuBLAS
product, say) sets another clock than the implementation's own. 200 ms hold 8 launches of anything
faster than 25 ms; slower ones get at least 3. In a round come first those far slower than the
fastest, then the cuBLAS product, then the others, so that these all run on a hot card.

A burst is what a cool card does: 12 ms after a pause of 250 ms, by triton.testing.do_bench, which
clears the L2 cache before every launch. Bursts alone keep the card cool all the time.

No ratio rests on those far slower than the fastest: they get two rounds instead of five. Rows that
come by the dozen (CuBridge's cells, most examples) get three rounds, the slow ones among them one, and
shorter pauses.

A block mask that an implementation needs is built before it is timed; how long that takes is
measured apart, and stands in the row with what the row comes to where each launch has its own.

Cases of short launches time a CUDA graph of GRAPH_LAUNCHES of them, so that neither a host nor the gap
between two launches counts. The figures are for one launch.
"""

import collections
import datetime
import itertools
import random
import statistics
import subprocess
import sys
import time

from peers import fault
from table import CUBLAS

ROUNDS, SLOW_ROUNDS, BURSTS, BURST_MS, PAUSE_SECONDS = 5, 2, 3, 12, 0.25
BRIEF_ROUNDS, BRIEF_SLOW_ROUNDS, BRIEF_PAUSE_SECONDS = 3, 1, 0.1  # of rows that come by the dozen
CONTENDER = 1.35         # times the fastest burst: slower ones cool the card for their neighbours
SETTLE_MS, STRETCH_MS, FEWEST_LAUNCHES = 150, 200, 3
BATCH_MS = 10            # launches are queued in batches of this length, two at a time
GRAPH_LAUNCHES = 20
MASKS = 3
CONTEXT_LOST = 75        # exit status


def first_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:150] if lines else ''}"


class Machine:
    """Time and clocks of the GPU; a test puts its own in the place of this one."""

    device = "cuda"
    pause_seconds = PAUSE_SECONDS

    def synchronize(self):
        import torch
        torch.cuda.synchronize()

    def forget(self):
        """What the last case left: compiled functions, and memory that PyTorch keeps, of which
        libraries that allocate for themselves would see nothing."""
        import gc
        import torch
        if hasattr(torch, "_dynamo"):
            torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()

    def leave_if_lost(self):
        """After an illegal access every later call of the process fails, after a broken capture
        every draw of random numbers: it ends here, and the parent starts another one."""
        import torch
        try:
            self.synchronize()
            torch.randn(1, device=self.device)
        except Exception:
            sys.exit(CONTEXT_LOST)

    def captured(self, run):
        """A function that replays GRAPH_LAUNCHES launches of `run` from a CUDA graph."""
        import torch
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # what a first call on a stream compiles and allocates
                run()
            with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                for _ in range(GRAPH_LAUNCHES):
                    output = run()
        self.synchronize()
        output.fill_(float("nan"))  # capturing computes nothing: the replay has to write it

        def replay(keep_alive=run):
            graph.replay()
            return output
        return replay

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
        time.sleep(self.pause_seconds)
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


# ---- who is right

def prepare(case, makers, banned, machine, mark):
    """Runs every implementation once. Gives the right ones as (name, run), a row for each other,
    what builds the block mask of those that need one, and the FLOP that they do."""
    inputs = case.draw(machine.device)
    pick, expected = inputs.sample()
    good, table, masks, consensus = [], {}, {}, None
    for name, make in makers:
        if name in banned:
            table[name] = {"status": banned[name]}
            continue
        mark(name)
        try:
            run = make(inputs)
            mask = getattr(run, "mask", None)
            if case.graph:
                run = as_graph(run, machine)
            output = run()
            machine.synchronize()
            wrong = fault(output, inputs.shape, pick, expected, consensus)
            if wrong:
                table[name] = {"status": "WRONG: " + wrong}
                continue
            consensus = output if consensus is None else consensus
            good.append((name, run))
            if mask:
                masks[name] = mask
        except Exception as error:  # a peer's failure is a row of the table
            table[name] = {"status": "failed: " + first_line(error)}
            mark(name, table[name]["status"])
            machine.leave_if_lost()
    return good, table, masks, inputs.flop


def as_graph(run, machine):
    run()
    machine.synchronize()
    try:
        return machine.captured(run)
    except Exception as error:
        raise RuntimeError("no CUDA graph: " + first_line(error)) from error


# ---- how fast

def sustained_ms(run, machine):
    """Milliseconds a call, at the clock that this load alone settles at.

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


def by_heat(good, bursts):
    """The order of a round: what is far slower than the fastest, the cuBLAS product, the others.

    Slow implementations cool the card, and its temperature lasts longer than a turn; whoever came
    next would have the better clock. So the others follow each other, behind the hottest."""
    peers = [bursts[name] for name, _ in good if name != CUBLAS and bursts[name]]

    def place(turn):
        name, burst = turn[0], bursts[turn[0]]
        return 1 if name == CUBLAS else 2 if burst and burst <= CONTENDER * min(peers) else 0
    return [[turn for turn in good if place(turn) == n] for n in range(3)]


def measure(good, machine, mark, burst=False, rounds=ROUNDS, slow_rounds=SLOW_ROUNDS):
    """{name: {"rounds_ms", "burst_ms"}}, with `burst` of bursts alone. One that fails drops out."""
    times = {name: {"status": "ok", "rounds_ms": [], "burst_ms": None} for name, _ in good}

    def timed(name, measurement):
        mark(name)
        try:
            return measurement()
        except Exception as error:
            times[name]["status"] = "failed: " + first_line(error)
            mark(name, times[name]["status"])
            machine.leave_if_lost()
            return None

    bursts = {name: timed(name, lambda: machine.burst_ms(run)) for name, run in good}
    groups, shuffle = by_heat(good, bursts), random.Random(0).shuffle
    slow = {name for name, _ in groups[0]}
    for name, run in good:
        more = 0 if burst or name in slow or bursts[name] is None else BURSTS - 1
        found = [bursts[name], *(timed(name, lambda: machine.burst_ms(run)) for _ in range(more))]
        if not burst and None not in found:
            times[name]["burst_ms"] = statistics.median(found)
    for n in range(rounds):
        for group in groups:
            shuffle(group)
        for name, run in itertools.chain(*groups):
            if times[name]["status"] == "ok" and (n < slow_rounds or name not in slow):
                turn = machine.burst_ms if burst else lambda run: sustained_ms(run, machine)
                times[name]["rounds_ms"].append(timed(name, lambda: turn(run)))
    return times


def figures(row, flop, launches):
    """The row with times of one launch, and TFLOP/s: the rounds' median, their spread, the burst's."""
    if row["status"] != "ok":
        return row
    times = [t / launches for t in row["rounds_ms"]]
    result = {"status": "ok", "rounds_ms": times, "tflops": flop / statistics.median(times) / 1e9,
              "spread": [flop / t / 1e9 for t in (max(times), min(times))]}
    if row["burst_ms"]:
        burst = row["burst_ms"] / launches
        result |= {"burst_ms": burst, "burst_tflops": flop / burst / 1e9}
    return result


def mask_ms(build, machine):
    """Milliseconds that a block mask takes to build, the median of MASKS after a first one: most of it
    is work of the host."""
    times = []
    for _ in range(1 + MASKS):
        machine.synchronize()
        started = machine.now_ms()
        build()
        machine.synchronize()
        times.append(machine.now_ms() - started)
    return statistics.median(times[1:])


def with_mask(row, flop, build, machine):
    """What the row comes to where each launch has a mask of its own."""
    try:
        milliseconds = mask_ms(build, machine)
    except Exception as error:
        machine.leave_if_lost()
        return {"mask": "failed: " + first_line(error)}
    each = statistics.median(row["rounds_ms"]) + milliseconds
    return {"mask_ms": milliseconds, "with_mask_tflops": flop / each / 1e9}


def measure_case(case, makers, banned, machine, mark, burst=False):
    import torch
    torch.set_grad_enabled(False)
    before, started = machine.clocks(), time.monotonic()
    machine.forget()
    good, table, masks, flop = prepare(case, makers, banned, machine, mark)
    n = 8192 if machine.device == "cuda" else 64
    a, b = (torch.randn(n, n, device=machine.device).to(torch.bfloat16) for _ in range(2))
    brief = getattr(case, "brief", False)
    machine.pause_seconds = BRIEF_PAUSE_SECONDS if brief else PAUSE_SECONDS
    rounds = (BRIEF_ROUNDS, BRIEF_SLOW_ROUNDS) if brief else (ROUNDS, SLOW_ROUNDS)
    times = measure([(CUBLAS, lambda: a @ b)] + good, machine, mark, burst, *rounds)
    table[CUBLAS] = product = figures(times.pop(CUBLAS), 2 * n ** 3, 1)
    for name, row in times.items():
        table[name] = row = figures(row, flop, GRAPH_LAUNCHES if case.graph else 1)
        if name in masks and row["status"] == "ok":
            row |= with_mask(row, flop, masks[name], machine)
    for row in table.values():
        if row["status"] == product["status"] == "ok":
            row["of_cublas"] = row["tflops"] / product["tflops"]
            if "burst_ms" in row:
                row["burst_of_cublas"] = row["burst_tflops"] / product["burst_tflops"]
    return {"rows": {name: table[name] for name in [CUBLAS] + [name for name, _ in makers]},
            "group": case.group, "floor": case.floor,
            "clocks": {"before": before, "after": machine.clocks()},
            "seconds": time.monotonic() - started,
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}
