"""The hand-written decoding kernel: built, checked against fp32, and timed beside FlashAttention-3 and what `make` makes.

    python bench/decode/decode.py build --out out/decode                       # needs nvcc (13.0 was used), and no GPU
    python bench/decode/decode.py make --out out/decode                        # needs kernelwright, and no GPU
    python bench/decode/decode.py check warm cold --out out/decode [--json FILE] [--only 'D64*'] [--rounds 5] [--limit 300]
    compute-sanitizer python bench/decode/decode.py small --out out/decode     # a few short cases of the check

make: for the heads and columns of each case, a kernel of a function of one query, `kernelwright make`'s own, of contiguous caches and of
pages, in out/decode/made. Those that are there are checked and timed with the others, as "made"; what lies behind a length in its last
page is finite for them, since a weight of 0 times NaN is none. Their launches, the kernel and the pass behind it, are PyTorch's
(python/kernelwright on PYTHONPATH, build/src/runtime/c_abi/libkernelwright_launch.so).

The library's name in `--out` holds a hash of its sources, so that an old one is never loaded. FlashAttention-3 takes part
where `flash_attn_interface` can be imported (the wheel tokenspeed-fa3); where it cannot, ours is timed alone.

check: every configuration against fp32 PyTorch, by the worst row (a query head's norm of the error over its norm): lengths of
0, 1, at edges of pages and of tiles, up to 20,000, many sequences, one; contiguous and in permuted pages of 16 and 64; NaN in
everything that must not be read; the grid's groups as they are by default and 7; overlapping launches and not. Each
runs four times and must give the same bits; the workspace's counts must be zero afterwards. Then a CUDA graph is replayed
with other lengths and pages. One that is wrong is printed, and the exit status is 1.

warm, cold: microseconds of one launch, the median of the rounds (and the lowest and highest), in each round a CUDA graph of 20
launches between two events, once before it untimed; implementations take turns in random order. FlashAttention-3's time has all that it
launches: what it prepares, and its combination. warm: every launch reads the same cache, of which a part is still in L2 (60 MB on an
H200). cold: every launch of a graph reads a cache of its own (fewer than 20 where 13 GB do not hold them; then each comes
again when more than 12 GB have been read), and 512 MB are read before each timed replay. Judge by cold: a model reads its weights
between two launches. Bytes: each key and value once. overlap: programmatic dependent launch. One of ours that differs from
FlashAttention-3 is not timed, and ends the run. `--limit`: no case begins after so many seconds.
"""

import argparse
import ctypes
import fnmatch
import hashlib
import itertools
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCES = ["kernel.cu", "launch.cuh", "ptx.cuh"]
FLAGS = ["-O3", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-lineinfo", "--shared", "-Xcompiler", "-fPIC",
         "-cudart", "static"]
SCORES = ["plain", "cap", "alibi", "window"]  # as kernel.cu numbers them
WINDOW = 100
ROW_ERROR = {"cap": 2e-2}  # tanh.approx; of the others 1e-2, of which bf16's rounding of o and of weights makes a third
LSE_ERROR = {"cap": 2e-2}  # of the others 1e-3
OPTIONS = {"cap": {"cap": 15.0}, "window": {"window": WINDOW}}  # of the check; ALiBi's slopes are made there
name_of = "D{2} {0}/{1} B{3} S{4}".format
LAUNCHES, POOL, FLUSH = 20, 13 << 30, 512 << 20
CASES = [(32, 8, 128, 1, 1024), (32, 8, 128, 1, 16384), (32, 8, 128, 1, 131072), (32, 8, 128, 8, 8192), (32, 8, 128, 32, 4096),
         (32, 8, 128, 128, 1024), (64, 8, 128, 8, 8192), (64, 8, 64, 8, 8192), (64, 8, 64, 8, 65536), (64, 8, 64, 32, 16384)]


SPEC = """import torch
from torch.nn.functional import scaled_dot_product_attention


def decode(q, k, v, {table}lengths):{read}
    seen = torch.arange(k.shape[2], device=q.device) < lengths[:, None, None, None]
    return scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)


def example_inputs():
    q, (k, v) = torch.randn(4, {heads}, 1, {D}).bfloat16(), torch.randn(2, {shape}, {D}).bfloat16()
    return q, k, v, {example}torch.tensor([512, 77, 300, 1], dtype=torch.int32)
"""
IN_PAGES = """
    k, v = (x[table.long()].flatten(1, 2).transpose(1, 2) for x in (k, v))"""
PAGES = (0, 16, 128)  # rows of a page of what is made; 0: none


def folder_of(out, heads, G, D, page):
    return out / "made" / (f"heads_{heads}_{G}_columns_{D}" + (f"_page_{page}" if page else ""))


def make(out):
    for (heads, G, D), page in itertools.product(sorted({case[:3] for case in CASES}), PAGES):
        folder = folder_of(out, heads, G, D, page)
        folder.parent.mkdir(parents=True, exist_ok=True)
        spec = folder.with_suffix(".py")
        of = {"table": "table, ", "read": IN_PAGES, "shape": f"{4 * 512 // page}, {page}, {G}",
              "example": f"torch.randperm({4 * 512 // page}, dtype=torch.int32).view(4, -1), "} if page else {
                  "table": "", "read": "", "shape": f"4, {G}, 512", "example": ""}
        spec.write_text(SPEC.format(heads=heads, G=G, D=D, **of))
        subprocess.run(["kernelwright", "make", spec, "--target", "sm_90a", "--out", folder], check=True)


class Problem(ctypes.Structure):
    """launch.cuh's, field by field."""
    _fields_ = ([(n, ctypes.c_void_p) for n in "q k v lengths pages slopes o lse workspace".split()]
                + [(n, ctypes.c_long) for n in "blocks rows".split()]
                + [(n, ctypes.c_int) for n in "batch key_heads group head_dim table_width score window groups overlap".split()]
                + [(n, ctypes.c_float) for n in "scale cap".split()])


def build(out):
    """The library's path; compiled if it is not there yet."""
    text = b"".join((HERE / name).read_bytes() for name in SOURCES) + " ".join(FLAGS).encode()
    library = out / f"decode-{hashlib.sha256(text).hexdigest()[:12]}.so"
    if not library.is_file():
        nvcc = shutil.which("nvcc") or shutil.which("nvcc", path=os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin"))
        if not nvcc:
            raise SystemExit("nvcc is neither on PATH nor in CUDA_HOME/bin: needed to build bench/decode/kernel.cu")
        out.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(".part")
        subprocess.run([nvcc, *FLAGS, "-o", part, HERE / "kernel.cu"], check=True)
        part.rename(library)
    return library


def load(path):
    of = ctypes.CDLL(str(path))
    of.decode_workspace.restype, of.decode_free.restype = ctypes.c_long, None
    of.decode_plan.restype = of.decode_launch.restype = ctypes.c_char_p
    of.decode_launch.argtypes, of.decode_free.argtypes = [ctypes.c_void_p] * 2, [ctypes.c_void_p]
    return of


class Decode:
    """A plan; calling it launches the kernel on the current stream, into .o and .lse.

    q [batch, heads, D], bf16; k and v [blocks, rows, key heads, D], bf16, contiguous, where a block is a sequence or, with
    pages, a page; lengths [batch] and pages [batch, width], int32, which may change between launches; slopes [heads], fp32.
    The scores are q k^T / sqrt(D); window: of so many keys that end with the last; workspace: of a plan of the same shape, on
    the same stream. Raises ValueError for what the kernel does not have.
    """

    def __init__(self, library, q, k, v, lengths, pages=None, score="plain", cap=0.0, window=0, slopes=None, groups=0,
                 overlap=False, workspace=None):
        batch, heads, D = q.shape
        self.library, self.keep = library, (q, k, v, lengths, pages, slopes)
        self.o, self.lse = torch.full_like(q, float("nan")), torch.full((batch, heads), float("nan"), device=q.device)
        address = [x.data_ptr() if x is not None else None for x in (*self.keep, self.o, self.lse)]
        problem = Problem(*address, None, k.shape[0], k.shape[1], batch, k.shape[2], heads // k.shape[2], D,
                          pages.shape[1] if pages is not None else 0, SCORES.index(score), window, groups, overlap, D ** -0.5, cap)
        size = library.decode_workspace(ctypes.byref(problem))
        self.workspace = torch.zeros(size, dtype=torch.uint8, device=q.device) if workspace is None else workspace
        problem.workspace = self.workspace.data_ptr()
        self.plan = ctypes.c_void_p()
        if error := library.decode_plan(ctypes.byref(problem), ctypes.byref(self.plan)):
            raise ValueError(error.decode())

    def __call__(self):
        if error := self.library.decode_launch(self.plan, torch.cuda.current_stream().cuda_stream):
            raise RuntimeError(error.decode())
        return self.o

    def __del__(self):
        if getattr(self, "plan", None):
            self.library.decode_free(self.plan)


class Made:
    """A launch of the kernel in a made folder, on Decode's tensors."""
    kernels = {}

    def __init__(self, folder, q, k, v, lengths, pages=None):
        from kernelwright.runtime.launch import Kernel
        kernel = self.kernels.setdefault(folder, None) or Kernel(folder)
        self.kernels[folder] = kernel
        (batch, heads, D), G = q.shape, k.shape[2]
        data = {"lengths": lengths} if pages is None else {"lengths": lengths, "table": pages}
        self.launch = kernel.prepare(q.view(batch, G, heads // G, D), k.transpose(1, 2), v.transpose(1, 2), **data)
        o, lse = self.launch()
        self.o, self.lse = o.view(batch, heads, D), lse.view(batch, heads)

    def __call__(self):
        self.launch()
        return self.o


def reference(q, k, v, score="plain", cap=0.0, window=0, slopes=None):
    """o [heads, D] and lse [heads] of one sequence in fp32: q [heads, D], k and v [length, key heads, D]."""
    (heads, D), (n, G, _) = q.shape, k.shape
    if n == 0:
        return torch.zeros_like(q, dtype=torch.float32), torch.full((heads,), float("-inf"), device=q.device)
    s = torch.einsum("ghd,ngd->ghn", q.float().view(G, -1, D), k.float()).view(heads, n) * D ** -0.5
    j = torch.arange(n, device=q.device)
    s = (cap * torch.tanh(s / cap) if score == "cap" else s + slopes[:, None] * (j - (n - 1)) if score == "alibi"
         else s.masked_fill(j < n - window, float("-inf")) if score == "window" else s)
    p = torch.softmax(s, -1)
    return torch.einsum("ghn,ngd->ghd", p.view(G, -1, n), v.float()).reshape(heads, D), torch.logsumexp(s, -1)


def cache_of(rows, lengths, firsts, page):
    """The cache that has rows[b] [length, key heads, D] of each sequence, and NaN everywhere else, before firsts too; its page
    table, whose unused entries name a page of NaN (None, if it is contiguous)."""
    size = page or max(lengths) + 70
    blocks = [max(1, -(-n // size)) for n in lengths]
    cache = rows[0].new_full((sum(blocks) + 1, size, *rows[0].shape[1:]), float("nan"))
    table = torch.full((len(lengths), max(blocks) + 3), sum(blocks), dtype=torch.int32, device=cache.device)
    numbers = torch.randperm(sum(blocks), generator=torch.Generator().manual_seed(5)) if page else torch.arange(sum(blocks))
    for b, (of_b, mine) in enumerate(zip(rows, numbers.to(cache.device).split(blocks))):
        flat = cache.new_full((len(mine) * size, *of_b.shape[1:]), float("nan"))
        flat[firsts[b]:lengths[b]] = of_b[firsts[b]:]
        cache[mine] = flat.view(len(mine), size, *of_b.shape[1:])
        table[b, :len(mine)] = mine.int()
    return cache, table if page else None


def judge(o, lse, right, score):
    """(worst row's error, worst error of the log-sum); not a number or infinite where something is plainly wrong."""
    ro, rl = torch.stack([x for x, _ in right]), torch.stack([x for _, x in right])
    empty = rl == float("-inf")
    if (o[empty] != 0).any() or (lse[empty] != rl[empty]).any():
        return float("inf"), float("inf")
    error = (o.float() - ro).norm(dim=-1) / ro.norm(dim=-1)
    return tuple(x[~empty].max().item() if (~empty).any() else 0.0 for x in (error, (lse - rl).abs()))  # a NaN stays one


def check_one(library, D, group, page, score, lengths, G, groups, overlap):
    """What is wrong, or None; and the two errors."""
    make = lambda *shape: torch.randn(*shape, device="cuda").bfloat16()  # noqa: E731
    rows_k, rows_v = [1.5 * make(n, G, D) for n in lengths], [make(n, G, D) for n in lengths]
    q, heads = make(len(lengths), G * group, D), G * group
    options = {"slopes": torch.linspace(0.01, 0.6, heads, device="cuda")} if score == "alibi" else OPTIONS.get(score, {})
    firsts = [max(0, n - WINDOW) if score == "window" else 0 for n in lengths]
    k, pages = cache_of(rows_k, lengths, firsts, page)
    v, _ = cache_of(rows_v, lengths, firsts, page)
    ours = Decode(library, q, k, v, torch.tensor(lengths, dtype=torch.int32, device="cuda"), pages, score, groups=groups,
                  overlap=overlap, **options)
    results = []
    for _ in range(4):
        ours.o.fill_(float("nan")), ours.lse.fill_(float("nan")), ours()
        results.append((ours.o.clone(), ours.lse.clone()))
    right = [reference(q[b], rows_k[b], rows_v[b], score, **options) for b in range(len(lengths))]
    error, lse_error = judge(*results[0], right, score)
    counts = ours.workspace[:4 * G * (groups or max(1, torch.cuda.get_device_properties(0).multi_processor_count // G))]
    if not error <= ROW_ERROR.get(score, 1e-2) or not lse_error <= LSE_ERROR.get(score, 1e-3):
        return f"a row is {error:.3g} from fp32, a log-sum {lse_error:.3g}", error, lse_error
    if any(not torch.equal(x, y) for again in results[1:] for x, y in zip(results[0], again)):
        return "the bits differ from run to run", error, lse_error
    return "the workspace's counts are not zero afterwards" if counts.any() else None, error, lse_error


def scattered(caches, lengths, page):
    """Caches [batch, S, key heads, D] in pages in no order, among pages of NaN, and their table, which names no page behind a length."""
    entries = -(-caches[0].shape[1] // page)
    count = len(lengths) * entries
    table = torch.randperm(count + 7, device="cuda")[:count].view(-1, entries)
    out = []
    for x in caches:
        pages = x.new_full((count + 7, page, *x.shape[2:]), float("nan"))
        padded = x.new_zeros(len(x), entries * page, *x.shape[2:])
        padded[:, :x.shape[1]] = x
        pages[table] = padded.view(len(x), entries, page, *x.shape[2:])
        out.append(pages)
    behind = torch.arange(entries, device="cuda") * page >= torch.tensor(lengths, device="cuda")[:, None]
    none = torch.where(torch.arange(entries, device="cuda") % 2 == 0, -1, 1 << 30)  # neither is there
    return out, torch.where(behind, none, table).int()


def check_made(out):
    """Of the made kernels: cases, those that are wrong, the worst row and log-sum."""
    cases, wrong, worst = 0, 0, (0.0, 0.0)
    for (heads, G, D), page in itertools.product(sorted({case[:3] for case in CASES}), PAGES):
        folder = folder_of(out, heads, G, D, page)
        if not folder.is_dir():
            continue
        for most, lengths in [(700, [0, 1, 15, 16, 17, 333, 700]), (1, [1]), (64, [0, 0]), (3000, [3000]), (20000, [20000, 3, 0, 64]),
                              (900, torch.randint(0, 900, (40,)).tolist()), (2048, [31, 32, 33, 63, 64, 65, 2047, 2048]),
                              (300, torch.randint(0, 300, (300,)).tolist())]:
            q = torch.randn(len(lengths), heads, D, device="cuda").bfloat16()
            k, v = torch.randn(2, len(lengths), most, G, D, device="cuda").bfloat16()
            (of_k, of_v), table = scattered((1.5 * k, v), lengths, page) if page else ((1.5 * k, v), None)
            made = Made(folder, q, of_k, of_v, torch.tensor(lengths, dtype=torch.int32, device="cuda"), table)
            first = made.o.clone(), made.lse.clone()
            right = [reference(q[b], 1.5 * k[b, :n], v[b, :n]) for b, n in enumerate(lengths)]
            errors = judge(*first, right, "plain")
            same = True
            for _ in range(3):
                made.o.fill_(float("nan")), made.lse.fill_(float("nan")), made()
                same = same and torch.equal(made.o, first[0]) and torch.equal(made.lse, first[1])
            worst = tuple(map(max, worst, errors))
            cases += 1
            if not (errors[0] <= 1e-2 and errors[1] <= 1e-3 and same):
                wrong += 1
                print(f"WRONG made D{D} {heads}/{G} page {page}, lengths {lengths}: a row is {errors[0]:.3g} from fp32, a log-sum {errors[1]:.3g}"
                      + ("" if same else "; the bits differ from run to run"), flush=True)
    print(f"made: {cases} cases, {wrong} wrong; worst row {worst[0]:.2g}, log-sum {worst[1]:.2g}", flush=True)
    return {"cases": cases, "wrong": wrong, "worst_row_and_lse": worst}


def check_replays(library):
    """Graphs of three launches, captured at lengths of 100 and replayed with others: how many were wrong, of how many."""
    G, group, batch, most, bad, n = 8, 4, 16, 4096, 0, 0
    for D, page in itertools.product((128, 64), (0, 16)):
        q = torch.randn(batch, G * group, D, device="cuda").bfloat16()
        k, v = (torch.randn(batch * most, G, D, device="cuda").bfloat16().view(-1, page or most, G, D) for _ in range(2))
        lengths = torch.full((batch,), 100, dtype=torch.int32, device="cuda")
        pages = torch.randperm(len(k), device="cuda").int().view(batch, -1) if page else None
        ours = Decode(library, q, k, v, lengths, pages, overlap=True)
        graph = graph_of([ours] * 3)
        for longest in (most, 50, 700, most):
            lengths.copy_(torch.randint(0, longest, (batch,)))
            if page:
                pages.copy_(torch.randperm(len(k)).view(batch, -1))
            ours.o.fill_(float("nan"))
            graph.replay()
            rows = [[x[pages[b].long()].reshape(-1, G, D)[:m] if page else x[b, :m] for x in (k, v)]
                    for b, m in enumerate(lengths.tolist())]
            error, _ = judge(ours.o, ours.lse, [reference(q[b], *rows[b]) for b in range(batch)], "plain")
            bad, n = bad + (not error <= 1e-2), n + 1
    return bad, n


def check(library, small, only):
    g = torch.Generator().manual_seed(3)
    lists = [[0, 1, 15, 16, 17, 333, 700], [1], [0, 0], [3000], [0, 5, 0], torch.randint(0, 900, (40,), generator=g).tolist(),
             [20000, 3, 0, 64], [31, 32, 33, 63, 64, 65, 2047, 2048]]
    shapes, bad, worst, replays = [(128, 4), (128, 3), (128, 8), (64, 8), (64, 5)], 0, {}, (0, 0)
    cases = [c for c in itertools.product(shapes, (0, 16, 64), SCORES, lists[:1] if small else lists)
             if not small or (c[0] in shapes[:4:3] and c[1] < 64 and c[2] in ("plain", "window"))]
    cases = [(f"D{c[0][0]} group {c[0][1]} page {c[1]} {c[2]}", *c) for c in cases]
    cases = [c for c in cases if fnmatch.fnmatch(c[0], only)]
    for i, (name, (D, group), page, score, lengths) in enumerate(cases):
        wrong, *errors = check_one(library, D, group, page, score, lengths, (8, 1, 3)[i % 3], (0, 7)[i // 3 % 2], i // 2 % 2)
        worst[score] = [max(x, y) for x, y in zip(errors, worst.get(score, (0, 0)))]
        bad += bool(wrong)
        if wrong:
            print(f"WRONG {name}, lengths {lengths}: {wrong}", flush=True)
    if not small and only == "*":
        replays = check_replays(library)
    print(f"{len(cases)} cases, {bad} wrong; {replays[1]} replays, {replays[0]} wrong; worst row and log-sum:",
          {k: [float(f"{x:.2g}") for x in v] for k, v in worst.items()}, flush=True)
    return {"cases": len(cases), "wrong": bad, "replays": replays[1], "replays_wrong": replays[0], "worst_row_and_lse": worst}


def graph_of(launches):
    for launch in launches[-2:]:
        launch()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for launch in launches:
            launch()
    return graph


def machine():
    query = "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,driver_version"
    return subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True).stdout.strip()


def implementations(library, fa3, case, pool, cold, out):
    """name -> 20 launches; how many caches they read."""
    heads, G, D, batch, S = case
    n = batch * S * G * D
    sets = min(LAUNCHES, pool.numel() // (2 * n)) if cold else 1
    q = torch.randn(batch, heads, D, device="cuda").bfloat16()
    lengths = torch.full((batch,), S, dtype=torch.int32, device="cuda")
    made = {}
    for page in (0, 16):
        shape, tag = ((-1, page, G, D), f" page {page}") if page else ((batch, S, G, D), "")
        caches = [tuple(x.view(shape) for x in pool[2 * i * n:2 * (i + 1) * n].view(2, -1)) for i in range(sets)]
        pages = torch.randperm(batch * S // page, device="cuda").int().view(batch, -1) if page else None
        if fa3:
            of = lambda k, v, pages=pages: lambda: fa3(q[:, None], k, v, cache_seqlens=lengths, page_table=pages, causal=True)  # noqa: E731
            made["FA3" + tag] = [of(k, v) for k, v in caches]
        folder = folder_of(out, heads, G, D, page)
        if folder.is_dir():
            made["made" + tag] = [Made(folder, q, k, v, lengths, pages) for k, v in caches]
        for overlap in (False, True):
            name = "ours" + tag + (" overlap" if overlap else "")
            made[name] = []
            for k, v in caches:
                workspace = made[name][0].workspace if made[name] else None
                made[name].append(Decode(library, q, k, v, lengths, pages, overlap=overlap, workspace=workspace))
            if fa3:
                right = made["FA3" + tag][-1]()
                right = (right[0] if isinstance(right, tuple) else right)[:, 0].float()
                apart = ((made[name][-1]().float() - right).norm() / right.norm()).item()
                if not apart < 1e-2:
                    raise SystemExit(f"{name} is {apart:.3g} from FlashAttention-3 in {case}")
        if "made" + tag in made:
            right = made["ours" + tag][-1]().float()
            apart = ((made["made" + tag][-1]().float() - right).norm() / right.norm()).item()
            if not apart < 1e-2:
                raise SystemExit(f"made{tag} is {apart:.3g} from the hand-written kernel in {case}")
    return {name: (launches * LAUNCHES)[:LAUNCHES] for name, launches in made.items()}, sets


def time_case(library, fa3, case, pool, cold, rounds, out):
    launches, sets = implementations(library, fa3, case, pool, cold, out)
    graphs = {name: graph_of(them) for name, them in launches.items()}
    flush = torch.zeros(FLUSH // 4, device="cuda")
    times, order = {name: [] for name in graphs}, list(graphs)
    for _ in range(rounds):
        random.shuffle(order)
        for name in order:
            graphs[name].replay()
            if cold:
                flush.sum()
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graphs[name].replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) / LAUNCHES * 1e3)
    return {"case": name_of(*case), "bytes": 4 * math.prod(case[1:]), "caches": sets,
            "us": {name: [round(x, 2) for x in (statistics.median(t), min(t), max(t))] for name, t in times.items()}}


def print_row(row, first):
    if first:
        print("| heads, shape | FA3 | ours | FA3/ours | ours TB/s | overlap | made | FA3/made | made TB/s | FA3 page 16 | ours page 16 | FA3/ours | overlap | made page 16 | FA3/made | made/paged |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    us = {name: t[0] for name, t in row["us"].items()}
    cell = lambda x, digits=2: f"{x:.{digits}f}" if x else "-"  # noqa: E731
    ratio = lambda a, b: us[a] / us[b] if a in us and b in us else None  # noqa: E731
    speed = lambda name: row["bytes"] / us[name] / 1e6 if name in us else None  # noqa: E731
    cells = [us.get("FA3"), us["ours"], ratio("FA3", "ours"), speed("ours"), us["ours overlap"], us.get("made"), ratio("FA3", "made"),
             speed("made"), us.get("FA3 page 16"), us["ours page 16"], ratio("FA3 page 16", "ours page 16"), us["ours page 16 overlap"],
             us.get("made page 16"), ratio("FA3 page 16", "made page 16"), ratio("made", "made page 16")]
    print(f"| {row['case']} | " + " | ".join(map(cell, cells)) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", choices=["build", "make", "check", "small", "warm", "cold"], help="default: check warm cold")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the library")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", default="*", help="cases whose name this pattern fits")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds")
    args = parser.parse_args()
    began, what = time.time(), args.what or ["check", "warm", "cold"]
    if what == ["make"]:
        return make(args.out)
    path = build(args.out)
    if what == ["build"]:
        return 0
    global torch
    import torch
    torch.manual_seed(1), random.seed(1)
    try:
        from flash_attn_interface import flash_attn_with_kvcache as fa3
    except ImportError as error:
        fa3 = None
        print("without FlashAttention-3:", error)
    library = load(path)
    report = {"gpu": torch.cuda.get_device_name(0), "torch": torch.__version__, "library": path.name, "machine": [machine()]}
    for kind in [w for w in ("check", "small") if w in what]:
        report[kind] = check(library, kind == "small", args.only)
        if kind == "check" and (args.out / "made").is_dir():
            report["check_made"] = check_made(args.out)
    pool = None
    for kind in [w for w in ("warm", "cold") if w in what]:
        if pool is None:
            pool = torch.cat([torch.randn(1 << 28, device="cuda").bfloat16() for _ in range(POOL >> 29)])
        print(f"\n{kind}: us a launch, medians of {args.rounds}")
        report[kind] = []
        for case in CASES:
            if fnmatch.fnmatch(name_of(*case), args.only) and time.time() - began < args.limit:
                report[kind].append(time_case(library, fa3, case, pool, kind == "cold", args.rounds, args.out))
                print_row(report[kind][-1], len(report[kind]) == 1)
    report["machine"].append(machine())
    if args.json:
        args.json.write_text(json.dumps(report, indent=1) + "\n")
    return 1 if any(report.get(k, {}).get("wrong") or report.get(k, {}).get("replays_wrong") for k in ("check", "check_made", "small")) else 0


if __name__ == "__main__":
    sys.exit(main())
