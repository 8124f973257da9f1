"""CuBridge's 96 cells as tables, and what has been published of them.

CuBridge (arXiv 2605.05023) and QiMeng-Attention were measured by CuBridge's authors on an H100; the
figures here are quoted from summaries of that paper, whose mask parameters are not public. They are no
measurement of ours, and no ratio to them is made.
"""

import statistics

from table import TRITON
from variants.peers import EAGER
from variants.rows import EIGHT_ROWS, HEADS, LENGTHS, ROWS

FLEX = (TRITON, "FlexAttention FLASH", "FlexAttention Triton, fast tanh")
PUBLISHED = {  # TFLOP/s over unmasked entries, H100, 32/32 heads, 8k
    "PyTorch": {"PrefixLM": "29.6", "Global Sliding Window": "3.4", "Comb": "out of memory"},
    "FlexAttention": {"PrefixLM": "404", "Global Sliding Window": "116", "Comb": "not supported"},
    "QiMeng-Attention": {"PrefixLM": "216", "Global Sliding Window": "24.6", "Comb": "51.9"},
    "CuBridge": {"PrefixLM": "552", "Global Sliding Window": "152", "Comb": "573"}}
AVERAGES = ("PyTorch 19.8x", "FlexAttention 1.62x", "QiMeng-Attention 4.35x")


def speeds(result):
    """(ours, best FlexAttention, PyTorch), each TFLOP/s or None."""
    found = {name: row["tflops"] for name, row in result["rows"].items() if row["status"] == "ok"}
    return (found.get("ours"), max((found[name] for name in FLEX if name in found), default=None),
            found.get(EAGER))


def cell(result):
    if result is None:
        return "-"
    mine, flex, eager = speeds(result)
    if mine is None:
        return result["rows"].get("ours", {"status": "not run"})["status"].partition(":")[0]
    ratios = [f"{mine / other:.2f}" if other else "-" for other in (flex, eager)]
    return f"{mine:.0f} ({', '.join(ratios)})"


def table(cases):
    lines = ["| TFLOP/s (over the best FlexAttention, over PyTorch) | heads | "
             + " | ".join(f"{length // 1024}k" for length in LENGTHS) + " |",
             "|---|---|" + "---:|" * len(LENGTHS)]
    rows = {(row.label, (row.heads, row.groups), row.length): row.name for row in ROWS["cubridge"]}
    for label in EIGHT_ROWS:
        for heads in HEADS:
            found = [cases.get(rows[label, heads, length]) for length in LENGTHS]
            lines.append(f"| {label} | {heads[0]}/{heads[1]} | " + " | ".join(map(cell, found)) + " |")
    return lines


def means(cases):
    """A sentence with the geometric means, or nothing."""
    names = [row.name for row in ROWS["cubridge"] if row.name in cases]
    found = [speeds(cases[name]) for name in names]
    said = []
    for place, other in ((1, "the best FlexAttention"), (2, "PyTorch")):
        ratios = [entry[0] / entry[place] for entry in found if entry[0] and entry[place]]
        if ratios:
            said.append(f"{statistics.geometric_mean(ratios):.2f}x {other} ({len(ratios)} cells, "
                        f"{min(ratios):.2f} to {max(ratios):.2f})")
    return [f"Measured here, geometric mean: {'; '.join(said)}.", ""] if said else []


def not_run(cases):
    """A sentence with the kernels of FlexAttention that have no cell, or nothing."""
    run = {name for result in cases.values() for name in result["rows"]}
    missing = [name for name in FLEX if name not in run]
    return [f"The best of those that were run; without {', '.join(missing)}.", ""] if missing else []


def published():
    names = list(PUBLISHED["CuBridge"])
    lines = ["Published (not measured here), 32/32 heads, 8k, an H100, by CuBridge's authors "
             "(arXiv 2605.05023, quoted from summaries; mask parameters are not public): ", "",
             "| published, TFLOP/s | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    lines += [f"| {system} | " + " | ".join(figures[name] for name in names) + " |"
              for system, figures in PUBLISHED.items()]
    return lines + ["", "Published averages of CuBridge on an H100, over " + ", ".join(AVERAGES)
                    + ". Figures on an A100 are not measured here: there was none.", ""]


def markdown(modes):
    """Lines of the page's chapter; `modes` is {mode: {name of a row: its result}}."""
    lines = ["## CuBridge's eight", "",
             "16k tokens in all, D 128, fp16, forward: prefix S/8; a causal window of S/16 and 16 global tokens; "
             "per 2048 tokens a question of 512 and three answers; eight blocks of random lengths; a full relative "
             "table; ReLU and sigmoid causal.", ""]
    cells = {row.name for row in ROWS["cubridge"]}
    measured = {mode: cases for mode, cases in modes.items() if cells & set(cases)}
    for mode, cases in measured.items():
        here = {name: result for name, result in cases.items() if name in cells}
        lines += [f"One H200, {mode}.", "", *table(here), "", *means(here), *not_run(here)]
    if not measured:
        lines += ["Not measured: no run of `bench/bench.py --rows cubridge` is given.", ""]
    return lines + published()
