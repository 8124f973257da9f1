"""The tables of a benchmark's run: for a terminal after each case, and for a README.

Ours is compared with the fastest peer in two readings. The fastest peer of the same function gets
the prefix or the slopes as an argument, as ours does. The fastest of all may also be
FlashAttention-4 with the prefix or the slopes compiled in (KNOWN), which is another function: a new
prefix would need a new compilation. The cuBLAS product is no attention, and the measure of the card.
"""

import math
import sys

KNOWN = "FlashAttention-4 known"
CUBLAS = "cuBLAS 8192^3"
COLUMNS = [("FA4", "FlashAttention-4"), ("Flex FLASH", "FlexAttention FLASH"),
           ("Flex Triton", "FlexAttention Triton"), ("cuDNN", "SDPA cuDNN"), ("cuBLAS", CUBLAS)]


def is_ours(name):
    return name == "ours" or name.startswith("ours ")


def fastest_peer(rows, with_known):
    """(name, TFLOP/s) of the fastest implementation that is not ours, or None."""
    peers = [(row["tflops"], name) for name, row in rows.items() if row["status"] == "ok"
             and not is_ours(name) and name != CUBLAS and (with_known or name != KNOWN)]
    if not peers:
        return None
    tflops, name = max(peers)
    return name, tflops


def ratio_lines(rows):
    """One line for each of ours: its ratio to the fastest peer, in both readings."""
    lines = []
    for name, row in rows.items():
        if not is_ours(name):
            continue
        if row["status"] != "ok":
            lines.append(f"{name} / fastest peer: none, {name} is {row['status']}")
            continue
        same, every = (fastest_peer(rows, with_known) for with_known in (False, True))
        if every is None:
            lines.append(f"{name} / fastest peer: none, no peer ran")
            continue
        parts = [f"{row['tflops'] / peer[1]:.3f} ({peer[0]}{what})" for peer, what in
                 ((same, " of the same function" if KNOWN in rows else ""), (every, " of all"))
                 if peer and (peer is same or KNOWN in rows)]
        lines.append(f"{name} / fastest peer = " + ", ".join(parts))
    return lines


def print_case(name, result):
    rows = result["rows"]
    best = fastest_peer(rows, with_known=False)
    print(f"\n{name}   (clocks {result['clocks']['before']} -> {result['clocks']['after']})")
    print(f"  {'':22} {'sustained':>9}  {'min..max':>11}  {'burst':>6}  of the fastest peer")
    for implementation, row in rows.items():
        if row["status"] != "ok":
            print(f"  {implementation:22} {row['status']}")
            continue
        low, high = row["spread"]
        ratio = f"{row['tflops'] / best[1]:.3f}" if best and implementation != CUBLAS else ""
        print(f"  {implementation:22} {row['tflops']:9.1f}  {f'{low:.0f}..{high:.0f}':>11}  "
              f"{row['burst_tflops']:6.0f}  {ratio}")
    for line in ratio_lines(rows):
        print(f"  {line}")
    sys.stdout.flush()


# ---- markdown

def _figure(row):
    return f"{row['tflops']:.0f}" if row and row["status"] == "ok" else "-"


def _ratio(row, rows):
    """"1.04", and where constants known to the compiler make a faster peer, "1.04 (0.99)"."""
    same, every = (fastest_peer(rows, with_known) for with_known in (False, True))
    if row["status"] != "ok" or same is None:
        return "-"
    first, second = (f"{_round_down(row['tflops'] / peer[1]):.2f}" for peer in (same, every))
    return first if same == every else f"{first} ({second})"


def _round_down(ratio):
    """To two digits, so that 0.996 is not shown as a tie."""
    return math.floor(ratio * 100 + 1e-9) / 100


def markdown(data):
    """The README's table of a run, as `bench.py --out` stored it."""
    header = ["TFLOP/s", "ours", *(title for title, _ in COLUMNS), "ours / fastest peer"]
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    bracketed = False
    for name, result in data["cases"].items():
        rows = result["rows"]
        mine = [n for n in rows if is_ours(n)]
        for ours in mine:
            title = name if len(mine) == 1 else f"{name}, {ours[5:]}"
            ratio = _ratio(rows[ours], rows)
            bracketed = bracketed or "(" in ratio
            cells = [title, _figure(rows[ours]), *(_figure(rows.get(p)) for _, p in COLUMNS), ratio]
            lines.append("| " + " | ".join(cells) + " |")
    environment = dict(data["environment"])
    gpu, driver = environment.pop("gpu"), environment.pop("driver", "unknown")
    dates = sorted({result["date"] for result in data["cases"].values()})
    when = " to ".join([dates[0], dates[-1]] if len(dates) > 1 else dates)
    versions = ", ".join(f"{package} {version}" for package, version in environment.items()
                         if version != "absent")
    lines += ["", f"{gpu}, driver {driver}; {versions}; {when}. Sustained, median of five rounds, "
              "unmasked entries only. The fastest peer is the fastest of all that ran, SDPA's other "
              "backends included; ratios are rounded down."]
    if bracketed:
        lines[-1] += (" In brackets: with FlashAttention-4 also allowed to have the prefix or the "
                      "slopes compiled in.")
    return "\n".join(lines)
