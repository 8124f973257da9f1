"""Every operator for every target: python bench/operators_table.py docs/results/operators.md [--check quick]

`kernelwright make` of each example for each target, from the sketch, and what it says: holds, with the registers
and the shared memory of the compiled kernel, or the refusal. Nothing here runs on a GPU. Takes half an hour on two cores.
"""

import argparse
import concurrent.futures
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90a")
OPERATORS = [  # name, example
    ("MHA, GQA, MQA", "full"), ("causal", "causal"), ("MLA prefill, 192 / 128", "mla_prefill"),
    ("GQA decode, heads as rows", "decode/gqa_decode"), ("MLA decode, absorbed, 576 / 512", "decode/mla_decode"),
    ("NSA, compressed", "decode/nsa_compressed"), ("NSA, selected blocks", "decode/nsa_selected"),
    ("NSA, window", "decode/nsa_window"), ("FP8, a scale a tensor", "fp8/per_tensor"),
    ("FP8, a scale a block", "fp8/per_block"), ("GEMM", "products/gemm"),
    ("GEMM + GELU", "products/gemm_gelu"), ("GEMM + ReduceSum", "products/gemm_reduce_sum"),
]  # fmt: skip
HEAD = """# Operators and targets

What `kernelwright make` says of each operator for each target, {check} check; written by `python bench/operators_table.py`. All
are made **from the sketch** (`--from sketch`), also where an expert's text is there. *holds*: the checker accepts the program and
its text compiles without spills; then the registers of a thread and the shared memory of a CTA.
Turing multiplies f16, all others bf16. **Only those of sm_90a ran on their own GPU**: each kernel of this page that holds was proved
on an H200, of the others the same source compiled for it (sm_80's with the tiles for sm_90; [results](README.md)).

"""


def kernelwright(*words):
    return subprocess.run([ROOT / "build/kernelwright", *map(str, words)], capture_output=True, text=True)


def cells_of(example, check, folder):
    """For each target what the table says, and the refusal where there is one."""
    found = {}
    for dtype, targets in (("f16", TARGETS[:1]), ("bf16", TARGETS[1:])):
        text = (ROOT / f"examples/{example}.py").read_text()
        file = folder / f"{example.replace('/', '_')}_{dtype}.py"
        file.write_text(text.replace("bfloat16", "float16") if dtype == "f16" else text)
        source = file.with_suffix("")
        kernelwright("capture", file, "--out", source)
        for target in targets:
            found[target] = outcome(kernelwright("make", source, "--from", "sketch", "--target", target, "--check", check,
                                                 "--out", folder / f"{source.name}_{target}"))
    return found


def outcome(run):
    if run.returncode == 0:
        built = re.search(r"(\d+) registers.* (\d+) spills, (\d+) KB shared", run.stderr)
        return f"holds, {built[1]} registers, {built[3]} KB" + (f", {built[2]} spills" if built[2] != "0" else ""), None
    said = next((line for line in run.stderr.splitlines() if "error" in line), f"exit {run.returncode}")
    code = re.search(r"error\[([\w.]+)\]:? *(.*)", said)
    return (f"refused: `{code[1]}`", code[2]) if run.returncode == 2 and code else (f"**exit {run.returncode}**", said)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--check", default="default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        cells = {name: pool.submit(cells_of, example, options.check, Path(folder)) for name, example in OPERATORS}
        lines, reasons = ["| operator | " + " | ".join(TARGETS) + " |", "|---|" + "---|" * len(TARGETS)], []
        for name, _ in OPERATORS:
            found = cells[name].result()
            lines.append(f"| {name} | " + " | ".join(found[target][0] for target in TARGETS) + " |")
            reasons += [f"- {name}, {target}: {found[target][1]}" for target in TARGETS if found[target][1]]
            print(lines[-1], flush=True)
    options.page.write_text(HEAD.format(check=options.check) + "\n".join(lines) + "\n" +
                            ("\nRefused:\n\n" + "\n".join(reasons) + "\n" if reasons else ""))


if __name__ == "__main__":
    main()
