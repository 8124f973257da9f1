"""What one score costs in a kernel's main loops, read off its SASS: instructions by unit.

nvdisasm prints a cubin's instructions. A main loop is one that issues the products of one block of
keys (HGMMA: D / 16 for its scores, BN / 16 for the product with V). Of its ways from top to bottom the shortest counts: what it leaves out (a raised maximum, a score
computed once more) happens a few times a row. A loop computes 64 * BN scores with 128 threads, so a
score has count / (BN / 2) of a thread's instructions.

Units and their rates, a multiprocessor of compute capability 9.0, in thread instructions a cycle
(CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions"): FMA 128 for FFMA, FMUL,
FADD and 64 for IMAD; ALU 64 for integers, logic, comparisons, selections, packing to 16 bits; MUFU 16;
LSU 32 for loads, stores and shuffles. Four schedulers issue 128 in all. The tensor cores do 4096 FLOP.
"""

import dataclasses
import os
import re
import shutil
import subprocess
from pathlib import Path

RATES = {"FMA": 128, "ALU": 64, "MUFU": 16, "LSU": 32, "issue": 128}
TENSOR_FLOP = 4096
FMA = {"FFMA": 1, "FMUL": 1, "FADD": 1, "IMAD": 2, "HFMA2": 1, "HADD2": 1, "HMUL2": 1}  # 2: half rate
ALU = ("FSEL", "FSETP", "FMNMX", "ISETP", "IADD3", "LOP3", "SEL", "SHF", "LEA", "PRMT", "VIMNMX",
       "IMNMX", "IABS", "F2FP", "PLOP3", "P2R", "R2P", "VOTE", "FSET", "BMSK", "SGXT", "MOV", "CS2R",
       "FLO", "POPC", "I2FP", "FCHK", "LOP", "IADD", "VIADD", "VIADDMNMX", "VIMNMX3")
SLOW = ("MUFU", "I2F", "F2I", "FRND", "F2F")  # conversions have the MUFU's rate
LSU = ("LDS", "LDG", "LD", "STS", "STG", "LDC", "SHFL", "ATOMS", "LDSM", "STSM")
WIDTH = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
LINE = re.compile(r"\s*/\*([0-9a-f]+)\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?);")
LABEL = re.compile(r"(\.L_x_\d+):")
TARGET = re.compile(r"\(?(\.L_x_\d+)\)?")


@dataclasses.dataclass
class Instruction:
    predicate: str
    name: str  # with its modifiers: HGMMA.64x128x16.F32.BF16
    operands: str

    @property
    def word(self):
        return self.name.partition(".")[0]

    @property
    def target(self):
        found = TARGET.search(self.operands) if self.word == "BRA" else None
        return found and found[1]


@dataclasses.dataclass
class Loop:
    """Thread instructions a score, by unit, of the shortest way through one main loop."""

    units: dict          # FMA (in full-rate ones), ALU, MUFU, LSU, issue
    loaded_bytes: float  # from global memory, a score

    def cycles(self):
        """Cycles of a multiprocessor a score, by unit, were it the only one."""
        return {unit: self.units[unit] / rate for unit, rate in RATES.items()}


# ---- reading

def disassembler():
    """nvdisasm: of the CUDA toolkit, or the one that Triton brings; None where there is neither."""
    if found := shutil.which("nvdisasm"):
        return found
    homes = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin/nvdisasm"]
    try:
        import importlib.util
        spec = importlib.util.find_spec("triton")
        homes += [Path(p) / "backends/nvidia/bin/nvdisasm" for p in spec.submodule_search_locations]
    except (ImportError, AttributeError):
        pass
    return next((str(path) for path in homes if path.exists()), None)


def text_of(cubin):
    tool = disassembler()
    if tool is None:
        raise FileNotFoundError("no nvdisasm: neither in PATH, nor in CUDA_HOME/bin, nor with Triton")
    run = subprocess.run([tool, "-c", str(cubin)], capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(f"{tool} {cubin}: {(run.stderr.strip().splitlines() or ['failed'])[0]}")
    return run.stdout


def read(text):
    """(instructions in order, {label: index of the instruction behind it})."""
    instructions, labels = [], {}
    for line in text.splitlines():
        if found := LABEL.match(line):
            labels[found[1]] = len(instructions)
        elif found := LINE.match(line):
            instructions.append(Instruction(found[2] or "", found[3], found[4]))
    return instructions, labels


# ---- loops

def main_loops(instructions, labels, products):
    """(first, last) of every loop that issues this many products, and is left again. What jumps back
    into a loop from afar, where it waited once more, closes no loop of its own."""
    loops = []
    for end, instruction in enumerate(instructions):
        start = labels.get(instruction.target)
        if start is None or start >= end:
            continue
        words = [i.word for i in instructions[start:end]]
        if words.count("HGMMA") == products and "EXIT" not in words:
            loops.append((start, end))
    return loops


def shortest_way(instructions, labels, loop):
    """Indices of the instructions on it. A jump out of the loop (to wait once more, say) is not taken."""
    first, last = loop
    best = {last: (1, None)}  # place: (length, the next place)
    for place in range(last - 1, first - 1, -1):
        ways = []
        target = labels.get(instructions[place].target)
        if target is not None and place < target <= last:
            ways.append(target)
        if not (ways and not instructions[place].predicate):
            ways.append(place + 1)
        length, way = min((best[w][0], w) for w in ways)
        best[place] = (length + 1, way)
    places = [first]
    while best[places[-1]][1] is not None:
        places.append(best[places[-1]][1])
    return places


def bytes_of(name):
    modifiers = name.split(".")
    return next((WIDTH[m] for m in modifiers if m in WIDTH), 4)


def units_of(instructions, loads, keys):
    """A Loop of these instructions, which compute 64 * keys scores with 128 threads, and these loads."""
    scores = keys / 2
    units = dict.fromkeys(RATES, 0)
    for instruction in instructions:
        word = instruction.word
        units["issue"] += 1
        units["FMA"] += FMA.get(word, 0)
        units["ALU"] += word in ALU
        units["MUFU"] += word in SLOW
        units["LSU"] += word in LSU
    return Loop({unit: count / scores for unit, count in units.items()},
                sum(bytes_of(name) for name in loads) / scores)


def loops_of(cubin, keys, dim):
    """The main loops of a cubin, the leanest first: it is the one without a mask, where there is one.
    `keys` is BN, the keys of a block, `dim` the columns of Q."""
    instructions, labels = read(text_of(cubin))
    found = []
    for first, last in main_loops(instructions, labels, (keys + dim) // 16):
        way = [instructions[i] for i in shortest_way(instructions, labels, (first, last))]
        loads = [i.name for i in instructions[first:last] if i.word == "LDG"]  # some are jumped over
        found.append(units_of(way, loads, keys))
    return sorted(found, key=lambda loop: loop.units["issue"])


def tensor_cycles(dim, columns):
    """Cycles of a multiprocessor's tensor cores a score."""
    return 2 * (dim + columns) / TENSOR_FLOP
