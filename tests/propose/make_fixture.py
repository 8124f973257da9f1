#!/usr/bin/env python3
"""Writes programs that are known as a proposer's answers to the questions that ask for them:

prefix_lm.answer.json      what the rules write for examples/prefix_lm.py
differential.answer.json   differential.tl, a program by hand for what no rule can write
rope_apart.answer.json     rope_apart.tl, another: a second product in the scores
key_mass.answer.json       what the rules write for examples/products/key_mass.py: the sums of attention's columns

    tests/propose/make_fixture.py      (after a change of the rules, the tiles or the kernels)

The program that an answer is about stands in the question, so one is asked for and left unanswered.
"""

import difflib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = ROOT / "build/kernelwright"


def program_in(request):
    """The numbered lines of a question."""
    return re.findall(r"^ *\d+\|(.*)$", request.read_text(), re.M)


def edits_between(old, new):
    edits = []
    for what, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        text = new[begin:end]
        if what == "insert":  # after the line before
            edits.append({"op": "insert_after", "first": first, "last": first,
                          "expect": old[first - 1].strip(), "text": text})
        elif what != "equal":
            edits.append({"op": "delete" if what == "delete" else "replace", "first": first + 1, "last": last,
                          "expect": old[first].strip(), "text": text})
    return edits


def answer(name, spec, kernel, target, new, why):
    """Writes NAME.answer.json. `new` is the program under the question's names, or gives it for a captured spec."""
    with tempfile.TemporaryDirectory() as folder:
        captured = pathlib.Path(folder) / "spec"
        subprocess.run([COMMAND, "capture", spec, "--out", captured], check=True, capture_output=True)
        subprocess.run([COMMAND, "transfer", kernel, "--spec", captured, "--target", target, "--proposer", "model",
                        "--api", f"folder:{folder}/asked", "--out", f"{folder}/x.tl"], capture_output=True)
        old = program_in(pathlib.Path(folder) / "asked/001.request.md")
        assert old, "no question was asked"
        edits = edits_between(old, new(captured).splitlines())
    text = json.dumps({"why": why, "edits": edits}, indent=1)
    (ROOT / f"tests/propose/{name}.answer.json").write_text(text + "\n")


def main():
    hopper, ampere = (ROOT / f"tests/corpus/{sm}_attention_fwd.tl" for sm in ("sm90", "sm80"))
    product = ROOT / "tests/corpus/sm80_gemm.tl"

    def by_rules(captured):
        run = subprocess.run([COMMAND, "transfer", hopper, "--spec", captured], check=True, capture_output=True,
                             text=True)
        return re.sub(r"\bprefix\b", "v3", run.stdout)

    def by_hand(_):
        return re.sub(r"\blam\b", "v5", (ROOT / "tests/propose/differential.tl").read_text())

    def positions_apart(_):
        return (ROOT / "tests/propose/rope_apart.tl").read_text()

    def of_columns(captured):
        run = subprocess.run([COMMAND, "transfer", product, "--spec", captured, "--target", "sm_80"], check=True,
                             capture_output=True, text=True)
        return re.sub(r"\blse\b", "v2", run.stdout)

    answer("prefix_lm", ROOT / "examples/prefix_lm.py", hopper, "sm_90a", by_rules,
           "Keep j <= i or j < v3[b], and visit the key blocks that this needs.")
    answer("differential", ROOT / "tests/propose/differential.py", ampere, "sm_80", by_hand,
           "The sums of both softmaxes first, then their difference times V.")
    answer("rope_apart", ROOT / "tests/propose/rope_apart.py", ampere, "sm_80", positions_apart,
           "The product of the positions is added to that of the contents; their keys have one head.")
    answer("key_mass", ROOT / "examples/products/key_mass.py", product, "sm_80", of_columns,
           "Each element becomes a weight, by its query's log-sum-exp, and the weights of a key are its row's sum.")


if __name__ == "__main__":
    sys.exit(main())
