"""The tables of a benchmark's run: for a terminal after each case and at the end, and for a README.

Ours is compared with the fastest peer in two readings. The fastest peer of the same function gets
the prefix or the slopes as an argument, as ours does. The fastest of all may also be
FlashAttention-4 with the prefix or the slopes compiled in (KNOWN), which is another function: a new
prefix would need a new compilation. The cuBLAS product is no attention, and the measure of the card.
A run's figures are all sustained or all bursts; the tables are the same.
"""

import math
import statistics
import sys

KNOWN = "FlashAttention-4 known"
TRITON = "FlexAttention Triton"
CUBLAS = "cuBLAS 8192^3"


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
    beside = any("burst_tflops" in row for row in rows.values())
    print(f"\n{name}   (clocks {result['clocks']['before']} -> {result['clocks']['after']}, "
          f"{result['seconds']:.0f} s)")
    wide = max(22, *map(len, rows))
    print(f"  {'':{wide}} {'sustained' if beside else 'burst':>9}  {'min..max':>11}  of cuBLAS  "
          + ("burst  of cuBLAS  " if beside else "") + "of the fastest peer")
    for implementation, row in rows.items():
        if row["status"] != "ok":
            print(f"  {implementation:{wide}} {row['status']}")
            continue
        low, high = row["spread"]
        ratio = f"{row['tflops'] / best[1]:.3f}" if best and implementation != CUBLAS else ""
        burst = (f"{row['burst_tflops']:5.0f}  {_share(row, 'burst_of_cublas'):>9}  "
                 if beside else "")
        print(f"  {implementation:{wide}} {row['tflops']:9.1f}  {f'{low:.0f}..{high:.0f}':>11}  "
              f"{_share(row, 'of_cublas'):>9}  {burst}{ratio:5}{_mask(row)}".rstrip())
    for line in ratio_lines(rows):
        print(f"  {line}")
    sys.stdout.flush()


def _mask(row):
    """What building its block mask costs, where it needs one."""
    if "mask_ms" in row:
        return f"  {row['with_mask_tflops']:.0f} with its mask, {row['mask_ms']:.2f} ms"
    return f"  its mask {row['mask']}" if "mask" in row else ""


def _share(row, name):
    return f"{row[name]:.3f}" if name in row else "-"


# ---- what a run comes to

def summary(cases):
    """Lines: each of ours beside the fastest peer of the same function, and for each group the
    smallest ratio, the geometric mean, and what is below its floor."""
    lines, ratios = ["", "ours / fastest peer of the same function"], {}
    for name, result in cases.items():
        best = fastest_peer(result["rows"], with_known=False)
        for ours, row in result["rows"].items():
            if not is_ours(ours):
                continue
            label = name + ours[4:]
            if row["status"] != "ok" or best is None:
                why = f"ours is {row['status']}" if row["status"] != "ok" else "no peer ran"
                lines.append(f"  {label:38} none: {why}")
                continue
            ratio = row["tflops"] / best[1]
            lines.append(f"  {label:38} {ratio:.3f}  {best[0]}; {_share(row, 'of_cublas')} of cuBLAS")
            ratios.setdefault(result["group"], []).append((ratio, label, result["floor"]))
    for group, found in ratios.items():
        lines += _beside(TRITON, cases, group)
        mean = statistics.geometric_mean(ratio for ratio, _, _ in found)
        below = [f"{label} {ratio:.3f} < {floor:.2f}" for ratio, label, floor in found
                 if ratio < floor]
        lines.append(f"{group}: {len(found)} rows, smallest {min(found)[0]:.3f} ({min(found)[1]}), "
                     f"geometric mean {mean:.3f}; below the floor: {'; '.join(below) or 'none'}")
    return lines if len(lines) > 2 else []


def _beside(peer, cases, group):
    """A line with the geometric mean of ours over one peer, of a group's rows that it runs."""
    found = [row["tflops"] / result["rows"][peer]["tflops"]
             for result in cases.values() if result["group"] == group
             for name, row in result["rows"].items() if is_ours(name) and row["status"] == "ok"
             and result["rows"].get(peer, {}).get("status") == "ok"]
    return [f"{group}: geometric mean {statistics.geometric_mean(found):.3f} of {peer}, "
            f"{len(found)} rows"] if found else []


# ---- markdown

HEADER = ["ours", "min..max", "of cuBLAS", "fastest peer", "ours / fastest peer"]


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


def _cells(row, rows):
    best = fastest_peer(rows, with_known=False)
    peer = f"{best[1]:.0f} {best[0]}" if best else "-"
    if row["status"] != "ok":
        return [row["status"].partition(":")[0], "-", "-", peer, "-"]
    share = f"{_round_down(row['of_cublas']):.2f}" if "of_cublas" in row else "-"
    return [f"{row['tflops']:.0f}", "{:.0f}..{:.0f}".format(*row["spread"]), share, peer,
            _ratio(row, rows)]


def _group_table(title, cases):
    lines = ["| " + " | ".join([title, *HEADER]) + " |", "|---|" + "---:|" * len(HEADER)]
    for name, result in cases.items():
        rows = result["rows"]
        for ours in filter(is_ours, rows):
            lines.append("| " + " | ".join([name + ours[4:], *_cells(rows[ours], rows)]) + " |")
    return lines + [""]


def _listed(values):
    return " and ".join(sorted({str(value) for value in values}))


def footnote(mode, cases, runs):
    """On what machine, with which packages and peers, and how, the cases of some runs were measured."""
    every = [result["environment"] for result in cases.values()]
    packages = [name for name in every[0] if name not in ("gpu", "driver")]
    versions = ", ".join(f"{name} {_listed(e[name] for e in every)}" for name in packages
                         if {e[name] for e in every} != {"absent"})
    cublas = [row["tflops"] for row in (result["rows"][CUBLAS] for result in cases.values())
              if row["status"] == "ok"]
    how = ("Sustained, median of five rounds" if mode == "sustained"
           else "Bursts from a cool card, median of five")
    lines = (f"{_listed(e['gpu'] for e in every)}, driver {_listed(e['driver'] for e in every)}; "
             f"{versions}; {_listed(result['date'] for result in cases.values())}. TFLOP/s of "
             f"unmasked entries. {how}, beside an 8192^3 cuBLAS product of {min(cublas, default=0):.0f} "
             f"to {max(cublas, default=0):.0f}. Ratios and shares are rounded down.")
    if any(run["peers"] == "fast" for run in runs):
        lines += " Only peers with a chance to be the fastest ran."
    if left_out := dict.fromkeys(peer for run in runs for peer in run["left_out"]):
        lines += f" Not installed: {', '.join(left_out)}."
    if any(KNOWN in result["rows"] for result in cases.values()):
        lines += (" In brackets: with FlashAttention-4 also allowed to have the prefix or the "
                  "slopes compiled in.")
    return lines


def markdown(runs):
    """The README's tables of runs, as `bench.py --out` stored them: those of one mode are one run
    in parts, and a later part's case replaces an earlier one's."""
    lines = []
    for mode in dict.fromkeys(run["mode"] for run in runs):
        parts = [run for run in runs if run["mode"] == mode]
        cases = {name: result for run in parts for name, result in run["cases"].items()}
        for group in dict.fromkeys(result["group"] for result in cases.values()):
            title = f"{group}, {mode}"
            lines += _group_table(title, {name: result for name, result in cases.items()
                                          if result["group"] == group})
        lines += [footnote(mode, cases, parts), ""] if cases else []
    return "\n".join(lines).rstrip()
