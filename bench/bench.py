"""Times generated attention kernels beside everything PyTorch offers, on one GPU, in one run.

    python bench/bench.py out/full out/causal out/prefix_lm out/alibi [--out FILE.json]

A folder holds kernel.cubin and launch.json and is named after the function that it computes, one of
full, causal, prefix_lm and alibi (else FUNCTION=FOLDER). Peers: each backend of
scaled_dot_product_attention that runs the case, FlexAttention with its Triton and FLASH backends,
FlashAttention-4's package where flash_attn.cute can be imported, and an 8192^3 cuBLAS product as the
measure of the machine. No network is needed.

How it measures. Every implementation of a case is run once and its output held against fp32 on
sampled rows, then against the others; one that differs is listed as WRONG and not timed. Then five
rounds, in each of which every implementation is timed for 40 ms (triton.testing.do_bench: cold L2,
median), in rotating order, each right after 100 ms of the cuBLAS product: the card's power limit
follows the load of the last tenth of a second, and whoever came after a slow neighbour would
otherwise find a faster card. The median of the rounds is the sustained figure; the spread is shown. The burst figure is the median of three timings of
12 ms, each after a pause. TFLOP/s count the unmasked entries only: 4 * D operations each.

Layouts are those that each implementation likes: [B, H, S, D] for PyTorch's own, [B, S, H, D] for
FlashAttention-4 and for ours.

The work is done by a child process, which writes the JSON after every case. Where it was cut off it
goes on: a case that is in the file, for the same GPU, versions and cubins, is not run again. A child
that dies or hangs takes nothing with it: the implementation at fault is listed as crashed, and a new
child goes on without it.
"""

import argparse
import dataclasses
import hashlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

FUNCTIONS = ("full", "causal", "prefix_lm", "alibi")
ROUNDS, ROUND_MS, BURST_MS, HEAT_MS = 5, 40, 12, 100
STEP_LIMIT_SECONDS = 240  # first calls compile for up to a minute
CUBLAS = "cuBLAS 8192^3"
CONTEXT_LOST = 75        # exit status
ROW_ERROR_LIMIT = 2e-2    # against fp32; bf16 arithmetic gives about 3e-3


@dataclasses.dataclass(frozen=True)
class Case:
    function: str
    batch: int
    heads: int
    length: int
    dim: int = 128

    @property
    def name(self):
        return f"{self.function} B{self.batch} H{self.heads} S{self.length} D{self.dim}"

    @property
    def prefix(self):
        return self.length // 8

    @property
    def unmasked(self):
        """Entries of one head's score matrix that count."""
        s, p = self.length, self.prefix
        causal = s * (s + 1) // 2
        # The first p rows see p keys instead of i + 1.
        return {"full": s * s, "prefix_lm": causal + p * (p - 1) // 2}.get(self.function, causal)

    @property
    def flop(self):
        return 4 * self.batch * self.heads * self.dim * self.unmasked


CASES = [Case("full", 4, 16, 4096), Case("causal", 4, 16, 4096),
         Case("full", 1, 16, 16384), Case("causal", 1, 16, 16384),
         Case("prefix_lm", 2, 16, 8192), Case("alibi", 2, 16, 8192)]


# ---- the functions, in fp32 on sampled rows

class Inputs:
    """One case's tensors. q, k, v are [B, H, S, D]; qs, ks, vs the same values kept as [B, S, H, D]."""

    def __init__(self, case, device):
        import torch
        torch.manual_seed(0)
        shape = (case.batch, case.length, case.heads, case.dim)
        self.case, self.device = case, device
        self.qs, self.ks, self.vs = (torch.randn(shape, device=device).to(torch.bfloat16)
                                     for _ in range(3))
        self.q, self.k, self.v = (t.transpose(1, 2).contiguous() for t in (self.qs, self.ks, self.vs))
        self.prefix = torch.full((case.batch,), case.prefix, dtype=torch.int32, device=device)
        head = torch.arange(1, case.heads + 1, dtype=torch.float32, device=device)
        self.slopes = torch.exp2(-8 * head / case.heads)

    def keep(self, i, j):
        """The mask as [B or 1, 1, i, j], or None."""
        if self.case.function == "full":
            return None
        causal = (j[None, :] <= i[:, None])[None, None]
        if self.case.function == "prefix_lm":
            return causal | (j < self.prefix[:, None])[:, None, None, :]
        return causal

    def bias(self, i, j):
        """What is added to the scaled scores, [1, H, i, j], or None."""
        if self.case.function != "alibi":
            return None
        return (self.slopes[:, None, None] * (j[None, :] - i[:, None]))[None]


def reference_rows(inputs, count=64):
    """(rows, their outputs in fp32 as [B, H, rows, D]), spread over the sequence, both ends included."""
    import torch
    s = inputs.case.length
    i = torch.linspace(0, s - 1, min(count, s), device=inputs.device).long().unique()
    j = torch.arange(s, device=inputs.device)
    scores = inputs.q[:, :, i].float() @ inputs.k.float().transpose(-1, -2) / math.sqrt(inputs.case.dim)
    bias, keep = inputs.bias(i, j), inputs.keep(i, j)
    if bias is not None:
        scores += bias
    if keep is not None:
        scores.masked_fill_(~keep, float("-inf"))
    return i, torch.softmax(scores, -1) @ inputs.v.float()


def fault(output, rows, expected, consensus):
    """Why an output is wrong, or None. `consensus` is an output already found right."""
    if output.shape != expected.shape[:2] + output.shape[2:3] + expected.shape[3:]:
        return f"shape {list(output.shape)}"
    sample = output[:, :, rows].float()
    error = ((sample - expected).norm(dim=-1) / expected.norm(dim=-1)).max().item()
    if not error <= ROW_ERROR_LIMIT:
        return f"row error {error:.1e} against fp32"
    if consensus is not None:
        a, b = output.float(), consensus.float()
        error = ((a - b).norm() / b.norm()).item()
        if not error <= ROW_ERROR_LIMIT:
            return f"error {error:.1e} against the others"
    return None


# ---- implementations: each maker gives a function that computes [B, H, S, D], or raises

def ours(folder):
    def make(inputs):
        from kernelwright.launch import DTYPES, Kernel
        kernel = Kernel(folder)
        arguments = json.loads((Path(folder) / "launch.json").read_text())["arguments"]
        dtypes = {a["name"]: a.get("dtype") for a in arguments}
        ranks = {a["name"]: len(a.get("dims", [])) for a in arguments}
        tensors = [t.transpose(1, 2) for t in (inputs.qs, inputs.ks, inputs.vs)]
        extra = {"prefix_lm": inputs.prefix, "alibi": inputs.slopes}.get(inputs.case.function)
        if extra is not None:
            tensors.append(extra.to(DTYPES[dtypes[kernel.inputs[3]]]))
        launch = kernel.prepare(*tensors)
        if len(kernel.outputs) == 1:
            return launch
        output = next(n for n, name in enumerate(kernel.outputs) if ranks[name] == 4)
        return lambda: launch()[output]
    return make


def sdpa(backend_name):
    def make(inputs):
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel
        backend = getattr(SDPBackend, backend_name)
        j = torch.arange(inputs.case.length, device=inputs.device)
        arguments = {"is_causal": inputs.case.function == "causal"}
        if inputs.case.function == "prefix_lm":
            arguments = {"attn_mask": inputs.keep(j, j)}
        elif inputs.case.function == "alibi":
            bias = inputs.bias(j, j).masked_fill(~inputs.keep(j, j), float("-inf"))
            arguments = {"attn_mask": bias.to(torch.bfloat16)}

        def run():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    inputs.q, inputs.k, inputs.v, **arguments)
        return run
    return make


def flex(**kernel_options):
    def make(inputs):
        import torch
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        compiled = torch.compile(flex_attention, dynamic=False)
        masks = {"causal": lambda b, h, i, j: i >= j, "alibi": lambda b, h, i, j: i >= j,
                 "prefix_lm": lambda b, h, i, j: (i >= j) | (j < inputs.prefix[b])}
        mask, score = masks.get(inputs.case.function), None
        if mask is not None:
            batch = inputs.case.batch if inputs.case.function == "prefix_lm" else None
            mask = create_block_mask(mask, batch, None, inputs.case.length, inputs.case.length,
                                     device=inputs.device)
        if inputs.case.function == "alibi":
            def score(s, b, h, i, j):
                return s + inputs.slopes[h] * (j - i)
        return lambda: compiled(inputs.q, inputs.k, inputs.v, score_mod=score, block_mask=mask,
                                kernel_options=kernel_options or None)
    return make


def fa4_modifiers(case):
    """Masks and score maps in FlashAttention-4's own language: {"prefix_lm", "alibi"}, each with the
    prefix or slopes read from a tensor, and with them known to the compiler."""
    import cutlass
    import cutlass.cute as cute
    from flash_attn.cute import utils
    constant_prefix, slope_step = case.prefix, -8.0 / case.heads

    @cute.jit
    def prefix(b, h, i, j, seqlen_info, aux_tensors):
        return (j <= i) | (j < utils.scalar_to_ssa(aux_tensors[0][b[0]], cutlass.Int32))

    @cute.jit
    def prefix_known(b, h, i, j, seqlen_info, aux_tensors):
        return (j <= i) | (j < utils.scalar_to_ssa(constant_prefix, cutlass.Int32))

    @cute.jit
    def alibi(s, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):  # the names are part of the call
        slope = cute.make_rmem_tensor(1, cutlass.Float32)
        slope[0] = aux_tensors[0][h[0]]
        return s + slope.load() * (kv_idx - q_idx).to(cutlass.Float32)

    @cute.jit
    def alibi_known(s, b, h, q_idx, kv_idx, seqlen_info, aux_tensors):
        power = (h + cute.full_like(h, 1)).to(cutlass.Float32) * cute.full_like(s, slope_step)
        return s + cute.math.exp2(power, fastmath=True) * (kv_idx - q_idx).to(cutlass.Float32)

    return {"prefix_lm": (prefix, prefix_known), "alibi": (alibi, alibi_known)}


def fa4(known=False):
    def make(inputs):
        from flash_attn.cute import flash_attn_func
        case = inputs.case
        arguments = {"causal": case.function in ("causal", "alibi")}
        if case.function == "prefix_lm":
            from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch
            from torch.nn.attention.flex_attention import create_block_mask
            blocks = create_block_mask(lambda b, h, i, j: (i >= j) | (j < inputs.prefix[b]),
                                       case.batch, None, case.length, case.length,
                                       device=inputs.device)
            arguments = {"mask_mod": fa4_modifiers(case)["prefix_lm"][known],
                         "aux_tensors": None if known else [inputs.prefix],
                         "block_sparse_tensors": BlockSparseTensorsTorch(
                             blocks.kv_num_blocks, blocks.kv_indices, blocks.full_kv_num_blocks,
                             blocks.full_kv_indices, block_size=(128, 128))}
        elif case.function == "alibi":
            arguments |= {"score_mod": fa4_modifiers(case)["alibi"][known],
                          "aux_tensors": None if known else [inputs.slopes]}

        def run():
            output = flash_attn_func(inputs.qs, inputs.ks, inputs.vs, **arguments)
            output = output[0] if isinstance(output, tuple) else output
            return output.transpose(1, 2)
        return run
    return make


KNOWN = "FlashAttention-4 known"


def implementations(function, folders):
    """(name, maker) in the order of the table. KNOWN is another function than the case asks for (its
    prefix or slopes are compiled in, not arguments): it is shown and is no peer."""
    known = [(KNOWN, fa4(known=True))] if function in ("prefix_lm", "alibi") else []
    return ([(f"ours {name}" if name else "ours", ours(folder)) for name, folder in folders]
            + [("FlashAttention-4", fa4())] + known
            + [("FlexAttention FLASH", flex(BACKEND="FLASH")),
               ("FlexAttention Triton", flex()), ("SDPA cuDNN", sdpa("CUDNN_ATTENTION")),
               ("SDPA flash", sdpa("FLASH_ATTENTION")),
               ("SDPA efficient", sdpa("EFFICIENT_ATTENTION")), ("SDPA math", sdpa("MATH"))])


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

    def run_for(self, run, milliseconds):
        started = time.perf_counter()
        while time.perf_counter() - started < milliseconds / 1000:
            for _ in range(8):
                run()
            self.synchronize()

    def median_ms(self, run, warmup_ms, repeat_ms):
        from triton.testing import do_bench
        return do_bench(run, warmup=warmup_ms, rep=repeat_ms, return_mode="median")

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

    def environment(self):
        import importlib.metadata
        import torch
        versions = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name()}
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


def measure(good, machine, mark):
    """{name: {"rounds_ms", "burst_ms"}}. The rounds are interleaved; one that fails drops out."""
    times = {name: {"status": "ok", "rounds_ms": [], "burst_ms": None} for name, _ in good}

    def timed(name, run, warmup, repeat):
        mark(name)
        try:
            return machine.median_ms(run, warmup, repeat)
        except Exception as error:
            times[name]["status"] = "failed: " + first_line(error)
            machine.leave_if_lost()
            return None

    for name, run in good:
        burst = []
        for _ in range(3):
            machine.synchronize()
            time.sleep(machine.pause if hasattr(machine, "pause") else 0.25)
            burst.append(timed(name, run, 2, BURST_MS))
        times[name]["burst_ms"] = statistics.median(burst) if None not in burst else None
    heater = dict(good).get(CUBLAS, good[0][1])
    for round_number in range(ROUNDS):
        for position in range(len(good)):
            name, run = good[(position + round_number) % len(good)]
            if times[name]["status"] == "ok":
                machine.run_for(heater, HEAT_MS)
                times[name]["rounds_ms"].append(timed(name, run, 10, ROUND_MS))
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
            "clocks": {"before": before, "after": machine.clocks()}}


# ---- the table

def print_case(name, result):
    rows = result["rows"]
    peers = [row["tflops"] for peer, row in rows.items()
             if row["status"] == "ok" and not peer.startswith(("ours", "cuBLAS", KNOWN))]
    best = max(peers, default=None)
    print(f"\n{name}   (clocks {result['clocks']['before']} -> {result['clocks']['after']})")
    print(f"  {'':22} {'sustained':>9}  {'spread':>11}  {'burst':>6}  of the fastest peer")
    for implementation, row in rows.items():
        if row["status"] != "ok":
            print(f"  {implementation:22} {row['status']}")
            continue
        low, high = row["spread"]
        ratio = f"{row['tflops'] / best:.3f}" if best and not implementation.startswith("cu") else ""
        print(f"  {implementation:22} {row['tflops']:9.1f}  {f'{low:.0f}..{high:.0f}':>11}  "
              f"{row['burst_tflops']:6.0f}  {ratio}")
    sys.stdout.flush()


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
        if function not in FUNCTIONS:
            sys.exit(f"{argument}: '{function}' is none of {', '.join(FUNCTIONS)}; "
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


def child(arguments, machine=None):
    """Runs every case that the JSON lacks. The marker file says what is being tried."""
    machine = machine or Machine()
    path, folders = Path(arguments.out), folders_by_function(arguments.folders)
    data = json.loads(path.read_text()) if path.exists() else {"cases": {}}
    data["environment"] = environment = machine.environment()
    for case in [c for c in CASES if not arguments.only or c.function in arguments.only]:
        mine = folders.get(case.function, [])
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
    parser.add_argument("--only", action="append", choices=FUNCTIONS, help="cases of this function")
    parser.add_argument("--marker", help=argparse.SUPPRESS)
    parser.add_argument("--banned", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.marker:
        return child(arguments)
    return parent(arguments)


if __name__ == "__main__":
    sys.exit(main())
