"""A foreign kernel for tests: the corpus's own Ampere kernel, taken as if nobody knew its vocabulary.

Its lift is known (tests/corpus), so answers are that program in parts, and mistakes planted in them.
"""

import json

from kernelwright_cli import ROOT

FILE = "kernels/sm80/attention_fwd.cu"
TEXT = (ROOT / FILE).read_text().splitlines()
TL = (ROOT / "tests/corpus/sm80_attention_fwd.tl").read_text().splitlines()


def line(begin, text=TEXT):
    """The number of the first line that begins so."""
    return next(n for n, one in enumerate(text, 1) if one.strip().startswith(begin))


def description(**changes):
    def tensor(name, offset, heads, rows, access):
        return {"name": name, "kind": "tensor", "offset": offset, "dtype": "bf16",
                "dims": ["B", heads, rows, 128], "access": access, "row_alignment": 16}

    sizes = [{"name": name, "kind": "size", "offset": 272 + 4 * k} for k, name in enumerate("BHGMN")]
    blocks = ["*", ["*", ["ceil_div", "M", 128], "H"], "B"]
    scale = ["*", ["rsqrt", 128], "log2e"]
    arguments = [
        tensor("q", 0, "H", "M", "read"), tensor("k", 56, "G", "N", "read"),
        tensor("v", 112, "G", "N", "read"), tensor("o", 168, "H", "M", "write"),
        {"name": "lse", "kind": "tensor", "offset": 224, "dtype": "f32", "dims": ["B", "H", "M"], "access": "write"},
        *sizes,
        {"name": "blocks", "kind": "size", "offset": 292, "value": blocks},
        {"name": "scale", "kind": "scalar", "dtype": "f32", "offset": 296, "value": scale},
        {"name": "slack", "kind": "scalar", "dtype": "f32", "offset": 300, "value": ["/", 8.0, "scale"]},
    ]  # fmt: skip
    return {
        "name": "somebody_elses", "target": "sm_80", "files": [{"path": FILE}],
        "read": [{"file": FILE, "first": line("using element"), "last": len(TEXT)}],
        "declarations": [{"file": FILE, "first": line("float slack"), "last": line("float slack")}],
        "unit": f'#include "{FILE}"\n', "entry": "attention_fwd",
        "nvcc": ["-std=c++17", "-I", "cuda"],
        "launch": {"threads": 128, "shared_bytes": 81920, "parameter_bytes": 304, "grid": "blocks",
                   "resident": 2, "arguments": arguments},
        **changes,
    }  # fmt: skip


NOTES = {"notes": [{"file": FILE, "line": line("kw::cp_async_commit"), "note": "closes a group of copies"}]}

# name, the first line's beginning of the CUDA text, and of the TL that says it
CUTS = [
    ("constants", "using element", "include"),
    ("arguments", "struct Args", "args:"),
    ("shared memory", "struct Shared", "shared:"),
    ("blocks", "struct Block", "record Block"),
    ("kernel", 'extern "C"', "kernel"),
    ("softmax", "auto softmax", "step softmax"),
    ("block of keys", "auto advance", "step advance"),
    ("loops and output", "kw::cp_async<1>(args.q", "cp_async q"),
]


def between(text, begins, last):
    starts = [line(begin, text) for begin in begins]
    return list(zip(starts, [n - 1 for n in starts[1:]] + [last], strict=True))


def regions():
    ranges = between(TEXT, [cut[1] for cut in CUTS], len(TEXT))
    return {"regions": [{"name": cut[0], "file": FILE, "first": a, "last": b, "who": "all threads"}
                        for cut, (a, b) in zip(CUTS, ranges, strict=True)]}  # fmt: skip


def parts(change=lambda text: text):
    ranges = between(TL, [cut[2] for cut in CUTS], len(TL))
    return {"parts": [{"name": cut[0], "after": "", "regions": [cut[0]], "tl": [change(one) for one in TL[a - 1 : b]]}
                      for cut, (a, b) in zip(CUTS, ranges, strict=True)], "left_out": []}  # fmt: skip


def edit(begin, new):
    n = line(begin)
    return {"file": FILE, "op": "replace", "first": n, "last": n, "expect": TEXT[n - 1].strip(), "text": new}


def causal():
    """What makes the kernel causal: the mask's condition and the range of keys."""
    mask, keys = line("kw::map_at(s"), line("return {kw::ceil_div(args.N, BN)")
    return {
        "why": "keys up to the query count",
        "edits": [
            edit("kw::map_at(s", [TEXT[mask - 1].replace("j < args.N", "j < kw::min(args.N, i + 1)")]),
            edit("return {kw::ceil_div(args.N, BN)", [
                TEXT[keys - 1].replace("kw::ceil_div(args.N, BN), args.N / BN",
                                       "kw::ceil_div(kw::min(args.N, i0 + rows), BN), kw::min(args.N, i0 + 1) / BN")
            ]),
        ],
        "arguments": [], "parameter_bytes": 304,
    }  # fmt: skip


def answer(folder, answers):
    """Lays answers into a provider's folder: objects as JSON, texts as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    for n, one in enumerate(answers, 1):
        (folder / f"{n:03}.answer.json").write_text(one if isinstance(one, str) else json.dumps(one))
    return f"folder:{folder}"
