"""The commands of documents do what the documents say: every block is run, in order, in an empty folder.

```console       lines that begin with `$ ` are commands; what follows is what they print. Any number stands
                 for any number, `...` for anything within a line, and a line `...` for any lines
```python FILE.X the block is written to FILE.X; without a name: run_snippets.py
```sh            run; what it prints does not matter

A command ends with 0, unless the next one is `echo $?`.
"""

import dataclasses
import os
import pathlib
import re
import subprocess

import pytest

from kernelwright_cli import COMMAND, ROOT, WARM

# Every page of docs/ and its rooms; the language's own texts and the results are no guides.
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if p.relative_to(ROOT / "docs").parts[0] not in ("tl", "results"))
DOCUMENTS = ["README.md", "docs/ten_minutes.md", "docs/kernel_engineers.md", "docs/deployment/serving.md",
             "docs/compilers.md", "docs/interchange.md", "docs/llm/models.md", "docs/llm/agents.md", "AGENTS.md"]
BLOCK = re.compile(r"^```(console|sh|python (\S+\.\w+))\n(.*?)^```$", re.M | re.S)


@dataclasses.dataclass
class Step:
    line: int  # in the document
    command: str = ""
    stated: list = None  # lines; None: whatever it prints
    file: str = ""  # to write, of this text
    text: str = ""


def steps_of(document):
    steps = []
    for block in BLOCK.finditer(document):
        kind, file, text = block.groups()
        line = document.count("\n", 0, block.start(3)) + 1
        if file:
            steps.append(Step(line, file=file, text=text))
        elif kind == "sh":
            steps.append(Step(line, text))
        else:
            steps += console_steps(line, text.splitlines())
    return steps


def console_steps(first, lines):
    steps = []
    for n, line in enumerate(lines):
        if line.startswith("$ "):
            steps.append(Step(first + n, line[2:], []))
        elif steps and steps[-1].command.endswith("\\") and not steps[-1].stated:
            steps[-1].command += "\n" + line
        else:
            assert steps, f"line {first + n}: output before the first command"
            steps[-1].stated.append(line)
    return steps


def pattern_of(line):
    """A stated line as a regular expression."""
    text = re.escape(re.sub(r"\s+", " ", line.strip()))
    text = text.replace(re.escape("..."), ".*").replace(r"\ ", " ")
    return re.sub(r"\d+(\\\.\d+)*", r"\\d+(\\.\\d+)*", text)


def difference(stated, printed):
    """The first stated line that was not printed where it is stated, or the first printed one that is not
    stated; None if there is neither."""
    lines = [re.sub(r"\s+", " ", line.strip()) for line in printed]
    at, anything = 0, False
    for line in stated:
        if line.strip() == "...":
            anything = True
            continue
        pattern = re.compile(pattern_of(line))
        found = next((n for n in range(at, len(lines) if anything else min(at + 1, len(lines)))
                      if pattern.fullmatch(lines[n])), None)
        if found is None:
            return f"not printed: {line}"
        at, anything = found + 1, False
    return None if anything or at == len(lines) else f"not stated: {printed[at]}"


def run_document(text, folder):
    """Raises AssertionError with the document's line where a command does something else."""
    environment = {**os.environ, "PATH": f"{COMMAND.parent}:{os.environ['PATH']}", "KERNELWRIGHT_HOME": str(ROOT),
                   **WARM, "LC_ALL": "C", "COLUMNS": "100"}
    steps = steps_of(text)
    where, last = folder, 0
    for n, step in enumerate(steps):
        if step.file:
            (where / step.file).write_text(step.text)
            continue
        told = folder / ".where"
        script = f"(exit {last})\n{step.command}\ncode=$?; pwd > {told}; exit $code"
        run = subprocess.run(["bash", "-c", script], cwd=where, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=300, env=environment)
        where, last = pathlib.Path(told.read_text().strip()), run.returncode
        shown = f"line {step.line}: $ {step.command}\n{run.stdout}"
        asked = n + 1 < len(steps) and steps[n + 1].command == "echo $?"
        assert run.returncode == 0 or asked, f"{shown}ends with {run.returncode}"
        if step.stated is not None:
            wrong = difference(step.stated, run.stdout.splitlines())
            assert not wrong, f"{shown}{wrong}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_does_what_the_document_says(document, tmp_path):
    run_document((ROOT / document).read_text(), tmp_path)


# --- the runner itself ------------------------------------------------------------------------

def test_a_document_that_is_right_passes(tmp_path):
    run_document("""
```python a.txt
one 1
two
```
text
```console
$ mkdir sub; cd sub; cat ../a.txt
one 17
...
$ pwd | tail -c 5 && \\
  echo more
/sub
more
$ false
$ echo $?
1
```
```sh
echo ignored
```
""", tmp_path)


@pytest.mark.parametrize("block, part", [
    ("$ echo yes\nno", "not printed: no"),
    ("$ echo yes", "not stated: yes"),
    ("$ echo a; echo b\na", "not stated: b"),
    ("$ echo a; echo b\nb\n...", "not printed: b"),
    ("$ echo x1y\nx y", "not printed"),
    ("$ false", "ends with 1"),
    ("$ true\n...\nlast", "not printed: last"),
])
def test_a_document_that_is_wrong_is_found_out(block, part, tmp_path):
    with pytest.raises(AssertionError, match=re.escape(part)):
        run_document(f"```console\n{block}\n```\n", tmp_path)


def test_blocks_of_other_kinds_are_not_run(tmp_path):
    run_document("```\n$ false\n```\n```cpp\nint x;\n```\n", tmp_path)
