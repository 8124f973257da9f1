"""Times generated attention kernels beside everything PyTorch offers, on one GPU, in one run.

    python bench/kernels.py                     # makes every kernel into out/; needs no GPU
    python bench/bench.py out [--out FILE.json] [--burst] [--peers fast] [--limit SECONDS]
    python bench/bench.py out --rows variants   # every example; or cubridge: its 96 cells
    python bench/bench.py --markdown FILE.json  # stored runs as tables; needs no GPU

A folder holds kernel.cubin and launch.json and is named after the function that it computes, with
what differs from D 128 in bf16: full, causal, prefix_lm, alibi, full_d64, causal_d192_128, full_f16,
full_ampere and so on (else NAME=FOLDER). A folder of such folders stands for all in it. Every case
of cases.py that a folder computes is run, or those that --only names (by folder, by group, or by a
pattern of the case's own name: '*S1024*'), without those that --skip names; without folders or --only
all, the peers alone. --rows takes other tables, those of variants/rows.py; --without leaves a peer out.
Peers: each backend of scaled_dot_product_attention that runs the case, FlexAttention with its
Triton and FLASH backends, FlashAttention-4's package, and an 8192^3 cuBLAS product as the measure of
the machine. A peer that cannot be imported is left out, which one line says. No network is needed.

A figure is sustained, the median of rounds that each last long enough for the clock to settle; beside
it stands what a short burst gives. With --burst only bursts are timed, from a card that stays cool.
Every figure also comes as a share of the cuBLAS product in the same rounds. measuring.py says how
and why, docs/measuring.md how to read them. --peers fast runs only those that have a chance to be
the fastest, which decide the ratio. TFLOP/s count the unmasked entries only: 4 * D operations each,
2 * (D + columns of V) where V has others.

The work is done by a child process, which writes the JSON after every case. Where it was cut off, or
stopped because another case would not end within --limit, it goes on: a case that is in the file, for
the same GPU, versions and cubins, is not run again. A child that dies or hangs takes nothing with it:
the implementation at fault is listed as crashed, and a new child goes on without it.
"""

import argparse
import fnmatch
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

from measuring import Machine, first_line, measure_case  # noqa: E402
from peers import FAST, NEEDS, PEERS, absent_peers  # noqa: E402
from table import markdown, print_case, summary  # noqa: E402
from variants import peers as variant_peers  # noqa: E402
from variants.rows import ROWS  # noqa: E402

STEP_LIMIT_SECONDS = 150  # first calls compile for up to a minute
INPUTS = "inputs and truth"  # as the marker has it
IMPLEMENTATION_SECONDS = 8  # of a first case, for --limit: compiling and timing


# ---- what there is to do

def keys_of(rows):
    """Folders that the cases of a table are computed by."""
    return tuple(dict.fromkeys(case.key for case in ROWS[rows]))


def kernels_in(argument, keys):
    """The argument, or where it is a folder of kernels instead of one, all that a case is named after."""
    if "=" in argument or (Path(argument) / "launch.json").exists():
        return [argument]
    found = [f"{argument}/{key}" for key in keys
             if (Path(argument) / key / "launch.json").exists()]
    return found or [argument]


def folders_by_key(arguments, rows="attention"):
    """{key of a case: [(label, folder)]}; the label tells several folders of one key apart."""
    folders, keys = {}, keys_of(rows)
    for argument in [found for argument in arguments for found in kernels_in(argument, keys)]:
        key, _, folder = argument.rpartition("=")
        key = key or Path(folder).name
        if key not in keys:
            sys.exit(f"{argument}: '{key}' is none of {', '.join(keys)}; say NAME=FOLDER")
        for file in ("kernel.cubin", "launch.json"):
            if not (Path(folder) / file).exists():
                sys.exit(f"{folder} has no {file}")
        folders.setdefault(key, []).append(folder)
    return {key: [("" if len(list_) == 1 else folder, folder) for folder in list_]
            for key, list_ in folders.items()}


def names(word, case):
    return word in (case.key, case.group) or fnmatch.fnmatchcase(case.name, word)


def selected(only, folders, rows="attention", skip=None):
    """Cases to run: those that --only names, or that there is a folder for, or all; but for --skip's."""
    for word in [*(only or []), *(skip or [])]:
        if not any(names(word, case) for case in ROWS[rows]):
            sys.exit(f"'{word}' names no case of {rows}: neither one of {', '.join(keys_of(rows))} "
                     "nor a pattern of a case's name, nor a group")
    chosen = (lambda case: any(names(word, case) for word in only)) if only else (
        lambda case: not folders or case.key in folders)
    return [case for case in ROWS[rows]
            if chosen(case) and not any(names(word, case) for word in skip or [])]


def signature(environment, folders):
    """What a stored result is valid for. The driver's version may differ: the machine that a second
    call gets is another of its kind, and no ratio goes from case to case."""
    versions = {name: version for name, version in environment.items() if name != "driver"}
    digest = hashlib.sha256(json.dumps(versions, sort_keys=True).encode())
    for _, folder in folders:
        for file in ("kernel.cubin", "launch.json"):
            digest.update((Path(folder) / file).read_bytes())
    return digest.hexdigest()[:16]


def stored(arguments):
    """The run in the file that --out names, or a new one. Figures of another kind are refused."""
    kind = {"mode": "burst" if arguments.burst else "sustained", "peers": arguments.peers,
            "rows": arguments.rows}
    path = Path(arguments.out)
    data = json.loads(path.read_text()) if path.exists() else {**kind, "cases": {}}
    if {name: data.get(name, "attention") for name in kind} != kind:
        sys.exit(f"{path} holds a run of {data.get('rows', 'attention')} with {data.get('mode')} "
                 f"figures and {data.get('peers')} peers; this one of {kind['rows']} has "
                 f"{kind['mode']} figures and {kind['peers']} peers: name another file with --out")
    return data


def write_json(path, data):
    part = Path(f"{path}.part")
    part.write_text(json.dumps(data, indent=1))
    part.replace(path)


# ---- the child

class Deadline:
    """Whether another case ends in time, judged by the slowest of this run for each implementation."""

    def __init__(self, end):
        self.end, self.seconds = end, IMPLEMENTATION_SECONDS

    def allows(self, implementations):
        return not self.end or time.time() + self.seconds * (implementations + 1) <= self.end

    def learn(self, seconds, implementations, first):
        each = seconds / (implementations + 1)  # and the cuBLAS product
        self.seconds = each if first else max(self.seconds, each)


def left_out(arguments):
    """{peer: why} of this run's table."""
    needs = NEEDS if arguments.rows == "attention" else variant_peers.NEEDS
    return absent_peers(needs) | {peer: "--without" for peer in arguments.without or []}


def say_what_is_left_out(absent, which, rows="attention"):
    for why in dict.fromkeys(absent.values()):
        print(f"left out: {', '.join(p for p in absent if absent[p] == why)} ({why})")
    slow = [p for p in PEERS if p not in FAST] if rows == "attention" else variant_peers.SLOW
    if which == "fast":
        print(f"left out by --peers fast: {', '.join(slow)}", flush=True)


def child(arguments, machine=None):
    """Runs every case that the JSON lacks. The marker file says what is being tried."""
    machine = machine or Machine()
    data, folders = stored(arguments), folders_by_key(arguments.folders, arguments.rows)
    environment, data["left_out"] = machine.environment(), left_out(arguments)
    say_what_is_left_out(data["left_out"], arguments.peers, arguments.rows)
    deadline, measured = Deadline(arguments.deadline), 0
    for case in selected(arguments.only, folders, arguments.rows, arguments.skip):
        mine = folders.get(case.key, [])
        key = signature(environment, mine)
        if data["cases"].get(case.name, {}).get("signature") != key:
            makers = case.makers(mine, arguments.peers, data["left_out"])
            if not deadline.allows(len(makers)):
                print(f"\nstopped before {case.name}, which may not end within the limit; the same "
                      f"command goes on with it", flush=True)
                break
            banned = json.loads(Path(arguments.banned).read_text()).get(case.name, {})

            def mark(implementation, why=None):
                write_json(arguments.marker,
                           {"case": case.name, "implementation": implementation, "why": why})
            if INPUTS in banned:
                print(f"\n{case.name}: not measured, its {INPUTS} {banned[INPUTS]}", flush=True)
                continue
            started = time.time()
            mark(INPUTS)
            try:
                result = measure_case(case, makers, banned, machine, mark, arguments.burst)
            except Exception as error:  # of its inputs or its truth: no peer's fault
                print(f"\n{case.name}: not measured, {first_line(error)}", flush=True)
                machine.leave_if_lost()
                continue
            data["cases"][case.name] = {"signature": key, "environment": environment, **result}
            write_json(arguments.out, data)
            deadline.learn(time.time() - started, len(makers), first=not measured)
            measured += 1
        print_case(case.name, data["cases"][case.name])


# ---- the parent

def run_child(arguments, marker, banned):
    """Exit status of one child, or None when it made no step within the limit and was killed."""
    process = subprocess.Popen(
        [sys.executable, __file__, *arguments.folders, "--out", arguments.out,
         "--peers", arguments.peers, "--rows", arguments.rows, *["--burst"] * arguments.burst,
         "--deadline", str(arguments.deadline), "--marker", marker, "--banned", banned,
         *[x for option in ("only", "skip", "without") for value in getattr(arguments, option) or []
           for x in (f"--{option}", value)]])
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
    folders = folders_by_key(arguments.folders, arguments.rows)
    selected(arguments.only, folders, arguments.rows, arguments.skip)
    stored(arguments)
    Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
    banned = {}
    with tempfile.TemporaryDirectory() as scratch:
        marker, list_ = f"{scratch}/marker.json", f"{scratch}/banned.json"
        while True:
            write_json(list_, banned)
            Path(marker).unlink(missing_ok=True)
            status = run_child(arguments, marker, list_)
            if status == 0:
                for line in summary(stored(arguments)["cases"]):
                    print(line)
                print(f"\nwritten: {arguments.out}")
                return 0
            if status == 1 or not Path(marker).exists():
                return 1  # a traceback of our own, or no GPU: another child would end alike
            tried = json.loads(Path(marker).read_text())
            why = tried.get("why") or ("hung" if status is None else f"crashed (exit {status})")
            print(f"{tried['case']}: {tried['implementation']} {why}; going on without it",
                  flush=True)
            banned.setdefault(tried["case"], {})[tried["implementation"]] = why


def main():
    started = time.time()
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folders", nargs="*", help="FOLDER or NAME=FOLDER")
    parser.add_argument("--out", help="the JSON; default bench/results/{bench,burst}.json")
    parser.add_argument("--markdown", metavar="FILE.json", nargs="+",
                        help="print stored runs as tables for a README; needs no GPU")
    parser.add_argument("--rows", choices=ROWS, default="attention",
                        help="variants: every example; cubridge: its eight functions, 96 cells")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="cases of this folder or group, or whose name has this pattern")
    parser.add_argument("--skip", action="append", metavar="NAME", help="none of these")
    parser.add_argument("--without", action="append", metavar="PEER",
                        choices=sorted({*PEERS, *variant_peers.PEERS}))
    parser.add_argument("--burst", action="store_true", help="time bursts only")
    parser.add_argument("--peers", choices=("all", "fast"), default="all",
                        help="fast: those that can be the fastest")
    parser.add_argument("--limit", type=float, metavar="SECONDS",
                        help="begin no case that may not end within this time")
    for hidden in ("--marker", "--banned"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=float, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.markdown:
        print(markdown([json.loads(Path(file).read_text()) for file in arguments.markdown]))
        return 0
    name = "burst" if arguments.burst else "bench"
    rows = "" if arguments.rows == "attention" else f"{arguments.rows}_"
    arguments.out = arguments.out or str(ROOT / f"bench/results/{rows}{name}.json")
    if arguments.marker:
        return child(arguments)
    arguments.deadline = started + arguments.limit if arguments.limit else 0
    return parent(arguments)


if __name__ == "__main__":
    sys.exit(main())
