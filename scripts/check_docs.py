#!/usr/bin/env python3
"""docs/tl.md against the language: check_docs.py [--run-tl PATH] [--root DIR]. A ctest.

Every statement of ops.def has a section with its spelling, the fixed headings and its laws, word for word; every
section has a statement; every law has a check in laws_*.cpp and a test that expects its refusal. Every line of an
example stands in a program of the tests, and an example that is a whole module is verified by run_tl.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

HEADINGS = ["Meaning", "Operands", "Laws", "Faults", "Example", "Device"]


def statements(root):
    """word -> (level, TL spelling), from ops.def. if_ and return_ are spelled without the underscore."""
    text = (root / "src/tl/ops.def").read_text()
    row = re.compile(r'^OP\((\w+?)_?,\s+(\w+), \w+, \w+,\s+"((?:[^"\\]|\\.)*)",\s+"((?:[^"\\]|\\.)*)"', re.M)
    found = {}
    for word, level, _, tl in row.findall(text):
        spelling = tl.replace("$d:value", " [= $value]")
        found[word] = (level, re.sub(r"\$(\w+)(:\w+)?", r"$\1", spelling))
    return found


def laws(root):
    """code -> sentence, from laws.def."""
    text = (root / "src/tl/laws.def").read_text()
    return {f"{w}.{c}": t for w, c, t in re.findall(r'^LAW\((\w+), (C\d+), "(.*)"\)$', text, re.M)}


def sections(doc):
    """word -> the text under its heading."""
    parts = re.split(r"^### (\w+)$", doc, flags=re.M)
    return {word: re.split(r"^## ", text, flags=re.M)[0] for word, text in zip(parts[1::2], parts[2::2])}


def listed_laws(text, prefix):
    """The laws that a piece of the document lists as `- C1: ...`, lines joined."""
    found = {}
    for code, law in re.findall(rf"^- {prefix}(C\d+): (.*(?:\n  .*)*)", text, re.M):
        found[code] = re.sub(r"\s+", " ", law)
    return found


def check_sections(doc, ops, problems):
    written = sections(doc)
    for word in sorted(set(ops) - set(written)):
        problems.append(f"{word}: ops.def has it, the document has no section")
    for word in sorted(set(written) - set(ops)):
        problems.append(f"{word}: the document has a section, ops.def no statement")
    for word in sorted(set(ops) & set(written)):
        level, spelling = ops[word]
        if f"`{spelling}` · {level}" not in written[word]:
            problems.append(f"{word}: its section does not begin with `{spelling}` · {level}")
        for heading in HEADINGS:
            if f"**{heading}.**" not in written[word]:
                problems.append(f"{word}: its section has no **{heading}.**")


def check_laws(root, doc, problems):
    known = laws(root)
    written = {}
    for word, text in sections(doc).items():
        written.update({f"{word}.{c}": t for c, t in listed_laws(text, "").items()})
    for family in ("names", "types", "uses", "target"):
        written.update({f"{family}.{c}": t for c, t in listed_laws(doc, f"{family}.").items()})
    for code in sorted(set(written) - set(known)):
        problems.append(f"{code}: the document has it, laws.def has not")
    checks = "".join(p.read_text() for p in sorted((root / "src/tl").glob("laws_*.cpp")))
    for code, sentence in known.items():
        if code not in written:
            problems.append(f"{code}: laws.def has it, the document has not")
        elif written[code] != re.sub(r"\s+", " ", sentence):
            problems.append(f"{code}: the document says `{written[code]}`, laws.def `{sentence}`")
        word, label = code.split(".")
        tests = root / f"tests/ops/{word}.tl"
        if not tests.exists() or f"# error[{code}]: " not in tests.read_text():
            problems.append(f"{code}: no refusal in tests/ops/{word}.tl")
        if f'"{label}"' not in checks and f'"{code}"' not in checks:
            problems.append(f"{code}: no check in laws_*.cpp")


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
    options = parser.parse_args()
    doc = (options.root / "docs/tl.md").read_text()
    problems = []
    ops = statements(options.root)
    for word in ops:
        if not (options.root / f"tests/ops/{word}.tl").exists():
            problems.append(f"{word}: no tests/ops/{word}.tl")
    check_sections(doc, ops, problems)
    check_laws(options.root, doc, problems)
    check_examples(options.root, doc, options.run_tl, problems)
    for problem in problems:
        print(problem)
    print(f"{len(ops)} statements, {len(laws(options.root))} laws, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
