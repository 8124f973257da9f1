"""Kernels as kernel engineers may have them: the corpus's Hopper kernel with their names, their tiles,
their order of declarations, their comments."""

import re
import subprocess

from kernelwright_cli import KERNEL, call

CAUSAL = """import torch


def causal(q, k, v):
    s = q @ k.mT * 128**-0.5
    return s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), -torch.inf).softmax(-1) @ v


def example_inputs():
    q, k, v = (torch.randn(2, 4, 96, 128, dtype=torch.bfloat16) for _ in range(3))
    return q, k, v
"""
NAMES = {"BM": "BLOCK_M", "BN": "BLOCK_N", "MATH": "CONSUMER", "LOAD": "PRODUCER", "Block": "Tile", "Keys": "Span",
         "q_s": "q_tiles", "k_s": "k_tiles", "lse": "log_sums", "slack": "head_room", "block_of": "tile_of",
         "key_blocks": "keys_for", "attention_fwd": "my_fmha", "softmax": "weigh", "advance": "step_once",
         "mine": "own", "acc": "total_v", "factor": "rescale"}


def replaced(text, old, new):
    assert old in text, old
    return text.replace(old, new, 1)


def own_tiles(text):
    """Other tiles, with a constant of one's own that others are made of."""
    text = replaced(text, "constexpr int BM = 256,", "constexpr int ROWS = 64;  // of a consumer\nconstexpr int BM = 2 * ROWS,")
    return replaced(text, "BN = 128, CTAS = 2", "BN = 64, CTAS = 1")


def own_names(text):
    for old, new in NAMES.items():
        text = re.sub(rf"\b{old}\b", new, text)
    return text


def reordered(text):
    """Arguments, tiles in shared memory and register tiles in another order."""
    lse = re.search(r"^    kw::Tensor<float, 'B', 'H', 'M'> lse;.*\n", text, re.M)[0]
    text = replaced(replaced(text, lse, ""), "struct Args {\n", "struct Args {\n" + lse)
    tile = "    kw::Ring<kw::SharedTile<element, BN, V>, STAGES> v_s;\n"
    text = replaced(replaced(text, tile, ""), "struct Shared {\n", "struct Shared {\n" + tile)
    q = "        kw::Operand<element, 64, D> q_r;\n"
    return replaced(replaced(text, q, ""), "        bool raised;\n", "        bool raised;\n" + q)


def commented(text):
    """Comments between tokens, behind statements and between them, over several lines, with code in them."""
    out = []
    for n, line in enumerate(text.splitlines()):
        if not line.startswith("#") and "//" not in line:
            line = line.replace(", ", ", /* , */ ").replace(";", "; /* kw::fence_async(); */") + f"  // note {n}"
        out.append(line)
        if line.endswith(f"// note {n}") and ";" in line:
            out.append("        /* for (;;) {\n           if (n) */")
    return "\n".join(out) + "\n"


VARIATIONS = {
    "renamed": lambda text: own_names(own_tiles(text)),
    "reordered": lambda text: reordered(own_tiles(text)),
    "commented": lambda text: commented(own_tiles(text)),
    "from Windows": lambda text: own_tiles(text).replace("\n", "\r\n").rstrip(),
}


def write_kernel(path, change=own_tiles):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(change(KERNEL.read_text()), newline="")
    return path


def git(folder, *words):
    return subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c",
                           "-c", "core.autocrlf=false", *map(str, words)],
                          check=True, capture_output=True, text=True)


def capture_causal(folder):
    """The captured folder of a causal specification."""
    (folder / "causal.py").write_text(CAUSAL)
    run = call("capture", folder / "causal.py", "--out", folder / "causal")
    assert run.returncode == 0, run.stderr
    return folder / "causal"
