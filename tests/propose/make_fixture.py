#!/usr/bin/env python3
"""Writes prefix_lm.answer.json: what the rules write for examples/prefix_lm.py, as a proposer's answer.

    tests/propose/make_fixture.py      (after a change of the rules, the tiles or the kernel)

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
PROGRAM = ROOT / "tests/corpus/sm90_attention_fwd.tl"


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


def main():
    with tempfile.TemporaryDirectory() as folder:
        spec = pathlib.Path(folder) / "spec"
        common = [COMMAND, "transfer", PROGRAM, "--spec", spec]
        subprocess.run([COMMAND, "capture", ROOT / "examples/prefix_lm.py", "--out", spec], check=True,
                       capture_output=True)
        rules = subprocess.run(common, check=True, capture_output=True, text=True).stdout
        subprocess.run([*common, "--proposer", "model", "--api", f"folder:{folder}/asked", "--out",
                        f"{folder}/x.tl"], capture_output=True)
        old = program_in(pathlib.Path(folder) / "asked/001.request.md")
    assert old, "no question was asked"
    new = re.sub(r"\bprefix\b", "v3", rules).splitlines()
    answer = {"why": "Keep j <= i or j < v3[b], and visit the key blocks that this needs.",
              "edits": edits_between(old, new)}
    (ROOT / "tests/propose/prefix_lm.answer.json").write_text(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
