"""vari.py BASE CASE D DV 'B,H,G,S;...' cubin...: rows of each variant beside autograd at small shapes, then times, interleaved."""
import json, os, pathlib, random, shutil, statistics, sys, tempfile
import torch, torch.nn.functional as F
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[2] / "python")]
from kernelwright.runtime.launch import Kernel
base, case, D, DV, shapes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
variants = sys.argv[6:]
def folder_of(cubin):
    if cubin == "base": return base
    d = tempfile.mkdtemp(); shutil.copy(base + "/launch.json", d)
    j = json.loads(pathlib.Path(base, "launch.json").read_text())
    meta = pathlib.Path(cubin).with_suffix(".json")
    if meta.exists():
        text = pathlib.Path(base, "launch.json").read_text()
        edits = json.loads(meta.read_text())
        if isinstance(edits, dict): text, edits = json.dumps(edits), []
        for a, b in edits:
            assert a in text, a
            text = text.replace(a, b)
        pathlib.Path(d, "launch.json").write_text(text)
    shutil.copy(cubin, d + "/kernel.cubin"); return d
def mk(B, H, G, M, N, spread=1.0):
    t = lambda h, s, d: (torch.randn(B, s, h, d, device="cuda") * spread).bfloat16().transpose(1, 2)
    return t(H, M, D), t(G, N, D), t(G, N, DV), t(H, M, DV)
def ref(q, k, v, g, dtype=torch.float32):
    q, k, v = (x.to(dtype).requires_grad_() for x in (q, k, v)); r = q.shape[1] // k.shape[1]
    s = q @ k.repeat_interleave(r, 1).transpose(-1, -2) * D ** -0.5
    if case == "causal":
        i = torch.arange(q.shape[2], device="cuda"); j = torch.arange(k.shape[2], device="cuda")
        s = s.masked_fill(j[None] > i[:, None], float("-inf"))
    o = torch.softmax(s, -1) @ v.repeat_interleave(r, 1)
    return o.detach(), torch.logsumexp(s, -1).detach(), torch.autograd.grad(o, (q, k, v), g.to(dtype))
kernels = {}
for v in variants:
    k = Kernel(folder_of(v)); kernels[pathlib.Path(v).stem] = k
for name, k in kernels.items():
    worst = []
    for B, H, G, M, N in ((2, 4, 2, 333, 333), (1, 2, 1, 777, 777), (1, 2, 2, 64, 64), (1, 1, 1, 1, 1), (1, 2, 1, 1000, 130)):
        torch.manual_seed(M); q, kk, v, g = mk(B, H, G, M, N)
        o, lse, due = ref(q, kk, v, g, torch.float64)
        got = k(q=q, k=kk, v=v, o=o.float().contiguous(), do_rows=g, d_o=g, lse=lse.float().contiguous(), **({'k_of': kk} if 'k_of' in k.inputs else {}))
        torch.cuda.synchronize()
        for n in ("dq", "dk", "dv"):
            x, y = got[k.outputs.index(n)].double(), due[("dq", "dk", "dv").index(n)]
            worst.append(((x - y).norm() / (y.norm() + 1e-20)).item() if y.norm() > 1e-9 else (x - y).abs().max().item())
    print(name, "worst relative", f"{max(worst):.4g}", [f"{w:.2g}" for w in worst], flush=True)
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
def ms(call, n):
    b, e = (torch.cuda.Event(enable_timing=True) for _ in range(2)); b.record()
    for _ in range(n): call()
    e.record(); e.synchronize(); return b.elapsed_time(e) / n
for shape in shapes.split(";"):
    B, H, G, S = map(int, shape.split(","))
    q, kk, v, g = mk(B, H, G, S, S)
    o = torch.randn(B, H, S, DV, device="cuda"); lse = torch.full((B, H, S), 8.0, device="cuda") 
    o = o * 0.01
    calls = {}
    for name, k in kernels.items():
        calls[name] = k.prepare(q=q, k=kk, v=v, o=o, do_rows=g, d_o=g, lse=lse, **({'k_of': kk} if 'k_of' in k.inputs else {}))
    calls["cublas"] = lambda: a @ a
    ops = 2 * (3 * D + 2 * DV) * B * H * (S * (S + 1) / 2 if case == "causal" else S * S)
    counts = {}
    for n, c in calls.items():
        for _ in range(3): c()
        counts[n] = max(2, round(25 / ms(c, 3)))
    found = {n: [] for n in calls}
    for _ in range(int(os.environ.get("ROUNDS", 5))):
        for n in random.sample(list(calls), len(calls)): found[n].append(ms(calls[n], counts[n]))
    print(case, f"D{D}/{DV} B{B} H{H}/{G} S{S}:", ", ".join(f"{n} {statistics.median((ops if n != 'cublas' else 2 * 8192**3) / x / 1e9 for x in t):.0f}" for n, t in found.items()), flush=True)
