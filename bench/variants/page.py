"""Writes docs/variants.md and its pictures: every example, its mask, its form, its diff, its speed.

    python bench/variants/page.py OUT [--bench FILE.json ...] [--why WHY.json]

OUT holds a kernel for each example (`kernelwright make examples/*.py --out OUT`); forms and diffs are
read from there. Speeds are those of `bench/bench.py OUT --rows variants` and `--rows cubridge`; of
several files, later ones win, and bursts stand beside sustained figures. What has no figure says so.
--why adds what bench/look/why.py wrote. A test holds the page against the examples and the pictures.
"""

import argparse
import ast
import hashlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "python")]

from look import why  # noqa: E402
from table import CUBLAS, KNOWN, TRITON, fastest_peer, footnote  # noqa: E402
from variants import cubridge_table  # noqa: E402
from variants.rows import ROWS  # noqa: E402

EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("*.py"))
INTRO = """# Variants

Written by `bench/variants/page.py`; `examples/` has the functions.

Each is made from `{expert}`, {lines} lines, by rules. In the pictures queries go down and keys to the right, with small
numbers in the place of an example's own (a window of 20, 64 tokens), in tiles of 8 by 8; a kernel's tiles are 64 queries
by some 128 keys. White tiles keep nothing and need no visit, green ones are kept whole and need no mask, orange ones
are kept in part; dark strokes are the kept entries.

"Lines" are those of the patch to the expert's file, taken away and added, and the larger of the two as a share of it.
"""
WHY = """By `bench/look/why.py`, from the kernels. Tiles: blocks of keys that are visited, over those that have a kept entry (*: a pre-pass
on the GPU lists them). Masked: visits that apply the mask. Computed: scores for each that is kept. FMA, ALU, MUFU,
issued, bytes: a thread's instructions a score by unit, and what it reads. Keys: a block's. Binds, next: the units asked for
longest, each beside the tensor cores. At most, measured: speed over full attention's, were the first unit always
busy, and as it was measured."""


def read_runs(files):
    """{mode: {name of a row: its result}} of what bench.py wrote, and the runs."""
    modes, runs = {}, [json.loads(Path(file).read_text()) for file in files]
    for run in runs:
        modes.setdefault(run["mode"], {}).update(run["cases"])
    return modes, runs


# ---- one example

def digest(example):
    return hashlib.sha256((ROOT / f"examples/{example}.py").read_bytes()).hexdigest()[:16]


def says(example):
    """The first sentence of its docstring."""
    words = ast.get_docstring(ast.parse((ROOT / f"examples/{example}.py").read_text()))
    paragraph = " ".join(words.partition("\n\n")[0].split())
    return paragraph if len(paragraph) < 200 else paragraph[:200].rpartition(" ")[0] + " ..."


def diff(folder):
    """(lines taken away, lines added, lines of the expert's file)."""
    lines = (folder / "kernel.patch").read_text().splitlines()
    gone = sum(line.startswith("-") and not line.startswith("---") for line in lines)
    new = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
    return gone, new, len((folder / "from/expert.cu").read_text().splitlines())


def ours(result):
    return result["rows"].get("ours", {"status": "not run"})


def speed(rows, modes):
    """Sentences about the rows of one example, or "not measured"."""
    lines = []
    for row in rows:
        for mode, cases in modes.items():
            if row.name in cases:
                lines.append(f"{row.name}, {mode}: {figures(cases[row.name])}")
    return lines or ["not measured"]


def figures(result):
    mine, best = ours(result), fastest_peer(result["rows"], with_known=False)
    if mine["status"] != "ok":
        return mine["status"]
    text = f"{mine['tflops']:.0f} TFLOP/s"
    if not best:
        return text + "; no peer ran"
    text += f"; fastest peer {best[1]:.0f} ({best[0]}), {mine['tflops'] / best[1]:.2f}x"
    peer = result["rows"][best[0]]
    if "with_mask_tflops" in peer:
        text += (f", {peer['with_mask_tflops']:.0f} where each call has its own mask "
                 f"({peer['mask_ms']:.1f} ms)")
    return text


def section(example, out, modes):
    folder = out / example
    certificate = json.loads((folder / "certificate.json").read_text())
    if certificate["spec"]["file"]["sha256"][:16] != digest(example):
        sys.exit(f"{folder} was made from another text of {example}.py: make it again")
    gone, new, lines = diff(folder)
    rows = [row for row in ROWS["variants"] if row.example == example]
    form = certificate["spec"]["form"].strip()
    return "\n".join([
        f"## {example}", f"<!-- {digest(example)} -->", "", f"![the mask of {example}](variants/{example}.svg)", "",
        says(example), "", "```", form, "```", "",
        f"Lines: -{gone} +{new}, {100 * max(gone, new) / lines:.0f} %. Speed: "
        + "; ".join(speed(rows, modes)) + ".", ""])


# ---- all of them

def ratio(mine, other):
    return f"{mine['tflops'] / other:.2f}" if mine["status"] == "ok" and other else "-"


def table(modes, runs=()):
    """Every row of the table of variants, for each mode, and how they were measured."""
    lines = []
    for mode, cases in modes.items():
        rows = [row for row in ROWS["variants"] if row.name in cases]
        if not rows:
            continue
        lines += [f"| {mode}, TFLOP/s | ours | fastest peer | ratio | of Flex Triton | its mask, ms | cuBLAS |",
                  "|---|" + "---:|" * 6]
        for row in rows:
            lines.append(line_of(row, cases[row.name]["rows"], ours(cases[row.name])))
        if runs:
            lines += ["", footnote(mode, {row.name: cases[row.name] for row in rows},
                                   [run for run in runs if run.get("rows") == "variants"])]
        lines.append("")
    return lines or ["No run of `bench/bench.py --rows variants` is given: speeds are not measured.", ""]


def line_of(row, found, mine):
    best = fastest_peer(found, with_known=False)
    triton = found.get(TRITON, {})
    known = found.get(KNOWN, {})
    share = ratio(mine, best and best[1])
    if known.get("status") == "ok":
        share += f" ({ratio(mine, known['tflops'])} known)"
    masks = [f"{peer['mask_ms']:.1f}" for name, peer in found.items()
             if best and name == best[0] and "mask_ms" in peer]
    return "| " + " | ".join([
        f"[{row.name}](#{row.example})",
        f"{mine['tflops']:.0f}" if mine["status"] == "ok" else mine["status"],
        f"{best[1]:.0f} {best[0]}" if best else "-", share, ratio(mine, triton.get("tflops")),
        *(masks or ["-"]),
        f"{found[CUBLAS]['tflops']:.0f}" if found[CUBLAS]["status"] == "ok" else "-"]) + " |"


def page(out, files, reasons):
    modes, runs = read_runs(files)
    _, _, lines = diff(out / "full")
    expert = json.loads((out / "full/certificate.json").read_text())["expert"]["name"]
    text = [INTRO.format(expert=expert, lines=lines), "## Speed", "", *table(modes, runs)]
    if reasons:
        rows = why.with_speeds(json.loads(Path(reasons).read_text()),
                               {"cases": modes.get("sustained") or modes.get("burst") or {}})
        text += ["## Why", "", why.printed(rows, markdown=True), "",
                 WHY, ""]
    text += cubridge_table.markdown(modes)
    text += [section(example, out, modes) for example in EXAMPLES]
    return "\n".join(text).rstrip() + "\n"


def draw(folder):
    from variants import mask_picture
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("*.svg"):
        stale.unlink()
    for example in EXAMPLES:
        (folder / f"{example}.svg").write_text(mask_picture.picture(example))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--bench", nargs="*", default=[], metavar="FILE.json")
    parser.add_argument("--why", metavar="WHY.json")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    if missing := [e for e in EXAMPLES if not (arguments.out / e / "certificate.json").exists()]:
        sys.exit(f"no kernel in {arguments.out} for {', '.join(missing)}")
    draw(arguments.docs / "variants")
    text = page(arguments.out, arguments.bench, arguments.why)
    (arguments.docs / "variants.md").write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
