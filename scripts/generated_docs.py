#!/usr/bin/env python3
"""Pages of docs/ that say what another text of the project says: generated_docs.py [--check] [--build DIR]

docs/commands.md          what every program prints with --help
docs/deployment/c_abi.md  the comments of include/kernelwright/launch_c.h
docs/python_reference.md  the docstrings of python/kernelwright (python_reference.py)
README.md                 its table of GPUs (support_matrix.py)
docs/images/speeds.svg    a table of docs/performance.md (speed_chart.py)
docs/tl/statements.md     the tables of the language, and docs/tl/text (statement_pages.py)

Writes them; with --check only says which are not what they should be, exit status 1. A test does that.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import textwrap

import python_reference
import speed_chart
import statement_pages as statements
import support_matrix

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTE = "<!-- Written by scripts/generated_docs.py from {}: change that, and run it. -->\n"
# Beside `kernelwright`; what each is for is in its own first line.
PROGRAMS = ["kernelwright-prove", "kernelwright-tune-time"]


# ---- docs/commands.md

def help_of(program, *words):
    """What --help prints, without the path that the program was called by."""
    run = subprocess.run([program, *words, "--help"], text=True, capture_output=True, check=True)
    return run.stdout.replace(str(program), program.name).strip() + "\n"


def commands_in(text):
    """The names of a help's commands: lines of its groups, which are neither options nor positionals."""
    found = []
    for group, lines in re.findall(r"^([^\n:]+):\n((?:  .*\n)+)", text, re.M):
        if group not in ("Options", "Positionals"):
            found += re.findall(r"^  ([a-z]\S*)  ", lines, re.M)  # a group may be one of options
    return found


def sections(program, words, footer):
    text = help_of(program, *words)
    name = " ".join([program.name, *words])
    yield f"## {name}\n\n```\n{text.replace(footer, '').strip()}\n```\n"
    for command in commands_in(text):
        yield from sections(program, [*words, command], footer)


def commands_page(build):
    program = build / "kernelwright"
    footer = help_of(program).strip().splitlines()[-1]  # the exit codes, which every command repeats
    parts = [NOTE.format("--help"), "# Commands\n", footer + "\n", *sections(program, [], footer)]
    for name in PROGRAMS:
        parts += sections(build / name, [], footer)
    return "\n".join(parts)


# ---- docs/deployment/c_abi.md

def filled(text):
    return textwrap.fill(" ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False)


def paragraphs_of(comment):
    """A comment's paragraphs, filled again; indented code as it stands."""
    lines = [re.sub(r"^ \* ?", "", line) for line in comment.splitlines()]
    for paragraph in "\n".join(lines).strip().split("\n\n"):
        yield paragraph if paragraph.startswith("  ") else filled(paragraph)


def c_abi_page(header):
    comments = re.split(r"/\*(.*?)\*/\n", header, flags=re.S)
    parts = [NOTE.format("include/kernelwright/launch_c.h"), "# The C interface\n"]
    for paragraph in paragraphs_of(comments[1]):
        title = re.match(r"([A-Z]\w+)\.\s", paragraph)
        if paragraph.startswith("  "):
            parts.append("```c\n" + re.sub(r"^  ", "", paragraph, flags=re.M) + "\n```\n")
        elif title:
            parts.append(f"## {title[1]}\n\n{filled(paragraph[title.end():])}\n")
        else:
            parts.append(paragraph + "\n")
    parts.append("In CMake: `find_package(kernelwright)` and `kernelwright::launch` ([packaging.md](packaging.md)). "
                 "`examples/cpp/with_c_abi.cpp` is a whole program.\n")
    parts.append("## Types and functions\n")
    for comment, code in zip(comments[3::2], comments[4::2]):
        code = re.split(r"#ifdef __cplusplus", code)[0].strip()
        parts.append(f"```c\n{code}\n```\n")
        parts += [paragraph + "\n" for paragraph in paragraphs_of(comment)]
    return "\n".join(parts)


def pages(build):
    header = (ROOT / "include/kernelwright/launch_c.h").read_text()
    return {"docs/commands.md": commands_page(build), "docs/deployment/c_abi.md": c_abi_page(header),
            "docs/tl/statements.md": statements.page(ROOT), "README.md": support_matrix.page(ROOT),
            "docs/images/speeds.svg": speed_chart.page(ROOT),
            "docs/python_reference.md": python_reference.page(NOTE.format("python/kernelwright"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit status 1 where a page is stale")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="where the programs are")
    options = parser.parse_args()
    stale = [name for name, text in pages(options.build).items()
             if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
    for name in stale:
        print(f"{name} is not what scripts/generated_docs.py writes" if options.check else f"wrote {name}")
        if not options.check:
            (ROOT / name).write_text(pages(options.build)[name])
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
