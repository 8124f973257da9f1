#!/usr/bin/env python3
"""The places of a statement: check_docs.py [--run-tl PATH] [--root DIR] [WORD ...]. A ctest.

A row of src/tl/ops.def is a statement, and this lists every place that lacks one, or those of the WORDs alone: its law
and its function (the linker says so too), its line in the schedules, what it costs if it computes, its functions on
the device with their conformance tests, its text in docs/tl/text with the fixed headings, and its tests, in a folder of
tests/ops that is named as the text's file.
docs/tl/statements.md is what statement_pages.py makes of the tables and those texts; every text has a statement; every law
has a check in src/tl/laws and a test that expects its refusal. Every line of an example, there and in docs/tl.md,
stands in a program of the tests, and an example that is a whole module is verified by run_tl.
"""
import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import statement_pages as statements

TEXT = r'"((?:[^"\\]|\\.)*)"'
ROW = re.compile(r"^OP\((\w+), (\w+), (\w+), (\w+), (\w+), (\w+), " + TEXT + r", (\w+), (\w+),\s+" + TEXT + ", "
                 + TEXT + ", " + TEXT + r"\)$", re.M)
Row = collections.namedtuple("Row", "name level where holds family by effects completes needs cuda tl after")


def rows(root):
    """word -> its row. if_ and return_ are words without the underscore."""
    text = (root / "src/tl/ops.def").read_text()
    found = [Row(*row) for row in ROW.findall(text)]
    if len(found) != len(re.findall(r"^OP\(", text, re.M)):
        sys.exit("src/tl/ops.def: a row does not have its twelve columns, spellings on the second line")
    return {row.name.rstrip("_"): row for row in found}


def text_of(root, folder, *patterns):
    """All files of a folder in one text."""
    return "\n".join(p.read_text() for pattern in patterns for p in sorted((root / folder).rglob(pattern)))


def check_places(root, ops, problems):
    laws_text = text_of(root, "src/tl/laws", "*.cpp")
    runs = text_of(root, "src/exec", "*.cpp")
    schedules = (root / "src/schedules/dispatch.cpp").read_text()
    costs = (root / "src/timeline/cost.cpp").read_text()
    groups = statements.groups(root)
    device, device_tests = text_of(root, "cuda/kw", "*.cuh"), text_of(root, "tests/gpu/conformance", "*.cu")
    for word, row in ops.items():
        def place(there, what):
            if not there:
                problems.append(f"{word}: {what}")
        place(re.search(rf"\bvoid law_{row.name}\(", laws_text), f"no law_{row.name} in src/tl/laws")
        does = f"exec_{row.name}" if row.where == "body" else f"declare_{row.name}"
        place(re.search(rf"\b{does}\(", runs), f"no {does} in src/exec")
        place(f"case Op::{row.name}:" in schedules, "no line in src/schedules/dispatch.cpp")
        if row.family in ("map", "gather", "reduce", "result") and row.by == "warp" and row.cuda:
            place(f"case Op::{row.name}:" in costs, "no cost in src/timeline/cost.cpp: it would be free")
        for function in dict.fromkeys(re.findall(r"kw::(\w+)", row.cuda)):
            place(re.search(rf"\b{function}\b", device), f"no kw::{function} in cuda/kw")
            place(re.search(rf"\b{function}\b", device_tests), f"no conformance test of kw::{function} in tests/gpu/conformance")
        tests = statements.test_file(word, groups)
        place((root / tests).exists(), f"no {tests}")


def check_sections(root, ops, problems):
    written = {}
    for title, words in statements.texts(root):
        for word, text in words.items():
            if word in written:
                problems.append(f"{word}: docs/tl/text has two sections")
            written[word] = text
    for word in sorted(set(ops) - set(written)):
        problems.append(f"{word}: ops.def has it, docs/tl/text has no section")
    for word in sorted(set(written) - set(ops)):
        problems.append(f"{word}: docs/tl/text has a section, ops.def no statement")
    for word in sorted(set(ops) & set(written)):
        found = re.findall(r"^\*\*(\w+)\.\*\*", written[word], re.M)
        if found != statements.HEADINGS:
            problems.append(f"{word}: its section's headings are {', '.join(found)}; they should be "
                            f"{', '.join(statements.HEADINGS)}")


def check_laws(root, ops, problems):
    checks = text_of(root, "src/tl/laws", "*.cpp")
    groups = statements.groups(root)
    for code in statements.laws(root):
        word, label = code.split(".")
        if word not in ops and word not in statements.GENERAL:
            problems.append(f"{code}: laws.def has it, ops.def no statement, and no section of the page has its family")
        tests = statements.test_file(word, groups)
        if not (root / tests).exists() or f"# error[{code}]: " not in (root / tests).read_text():
            problems.append(f"{code}: no refusal in {tests}")
        if f'"{label}"' not in checks and f'"{code}"' not in checks:
            problems.append(f"{code}: no check in src/tl/laws")


def check_examples(root, doc, run_tl, problems):
    lines = set()
    for path in (root / "tests").rglob("*.tl"):
        for line in path.read_text().splitlines():
            lines.add(line.split("  # error[")[0].lstrip("+- ").rstrip())
    modules = []
    for example in re.findall(r"^```tl\n(.*?)^```$", doc, re.M | re.S):
        if re.match(r"(include|level .*\n.)", example):
            modules.append(example)
            continue
        for line in example.splitlines():
            if line.strip() not in lines:
                problems.append(f"example: no program of the tests has the line `{line.strip()}`")
    modules = [m for m in modules if m.count("\n") > 1]
    if not modules:
        problems.append("example: no complete module in the document")
    if run_tl and modules:
        with tempfile.NamedTemporaryFile("w", suffix=".tl") as f:
            f.write("# ask: roundtrip verify\n" + "".join(f"# module: {n}\n{m}" for n, m in enumerate(modules)))
            f.flush()
            run = subprocess.run([run_tl, f.name], capture_output=True, text=True)
            if run.returncode:
                problems.append(f"example: {run.stdout}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run-tl", help="the test runner, to verify complete modules")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only these statements")
    options = parser.parse_args()
    page = statements.page(options.root)
    problems = []
    ops = rows(options.root)
    check_places(options.root, ops, problems)
    check_sections(options.root, ops, problems)
    check_laws(options.root, ops, problems)
    check_examples(options.root, (options.root / "docs/tl.md").read_text() + page, options.run_tl, problems)
    written = options.root / "docs/tl/statements.md"
    if not written.exists() or written.read_text() != page:
        problems.append("docs/tl/statements.md is not what scripts/generated_docs.py writes")
    if options.words:
        problems = [p for p in problems if re.split(r"[.:]", p)[0] in options.words]
    for problem in problems:
        print(problem)
    print(f"{len(ops)} statements, {len(statements.laws(options.root))} laws, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
