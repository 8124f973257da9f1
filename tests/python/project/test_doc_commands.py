"""Every command that a document names exists, with each of its options: also those that no test can run,
because they take a GPU, an hour or a folder of the reader's. What test_docs.py runs is held here too."""

import re

import pytest

import test_docs
from kernelwright_cli import ROOT

GENERATED = {"commands.md", "c_abi.md", "python_reference.md"}
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md",
         *(p for p in test_docs.PAGES if p.name not in GENERATED)]
PROGRAM = re.compile(r"(?<![\w/.-])(kernelwright(?:-prove|-tune-time)?)((?:[ ]+[^\s`|&;>#]+)*)")
SCRIPT = re.compile(r"(?<![\w/.-])((?:bench|scripts|tests/gpu)/[\w/.]+\.(?:py|sh)|scripts/\w+)((?:[ ]+[^\s`|&;>#]+)*)")
GLOBAL = {"--help", "--version"}


def code_of(text):
    """The code of a document: fenced and indented lines, and what stands between backquotes. Lines that
    end in a backslash go on."""
    fences = re.compile(r"^```[^\n]*\n(.*?)^```$", re.M | re.S)
    fenced = [m[1] for m in fences.finditer(text)]
    rest = fences.sub("", text)
    indented = re.findall(r"(?:^    .*\n)+", rest, re.M)
    inline = re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", rest)
    return [re.sub(r"\\\n\s*", " ", part) for part in [*fenced, *indented]] + [" ".join(i.split()) for i in inline]


def helps():
    """command's words -> its --help, from docs/commands.md (which a test holds against the programs)."""
    page = (ROOT / "docs/commands.md").read_text()
    return dict(re.findall(r"^## ([^\n]+)\n\n```\n(.*?)```", page, re.M | re.S))


def options(words):
    """--name of each option; [--x] is one that may be left out."""
    return [re.match(r"-{1,2}[\w-]+", w.strip("[]()"))[0] for w in words if re.match(r"\[?\(?--\w", w)]


def problem_with(program, words, known):
    """What is wrong with a command line of ours; None."""
    said = " ".join([program, *words])
    heading = next((h for n in (2, 1, 0) if (h := " ".join([program, *words[:n]])) in known), None)
    if heading == "kernelwright" and words and re.fullmatch(r"[a-z][a-z-]+", words[0]):
        return f"`{said}`: there is no command {words[0]}"
    for option in options(words):
        if option not in GLOBAL and not re.search(rf"(?<![\w-]){option}(?![\w-])", known[heading]):
            return f"`{said}`: {heading} --help has no {option}"
    return None


def problem_with_script(path, words):
    file = ROOT / path
    if not file.is_file():
        return f"`{path}` does not exist"
    for option in options(words):
        if option not in file.read_text():
            return f"`{path} {' '.join(words)}`: the script knows no {option}"
    return None


def problems(text, known):
    found = []
    for part in code_of(text):
        for line in part.splitlines():
            command = line.removeprefix("$ ").lstrip()
            for m in PROGRAM.finditer(command):
                # A folder, a library or a word of prose in code is no command: one begins its line.
                if m.start() == 0 or re.search(r"(?:&&|\||;|[A-Z_]+=\S+) *$", command[:m.start()]):
                    found.append(problem_with(m[1], m[2].split(), known))
            found += [problem_with_script(m[1], m[2].split()) for m in SCRIPT.finditer(command)]
    return [f for f in found if f]


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.name)
def test_every_command_of_a_document_exists_with_its_options(path):
    assert not problems(path.read_text(), helps())


def test_every_document_with_a_session_is_one_whose_sessions_are_run():
    for path in TEXTS:
        if test_docs.BLOCK.search(path.read_text()):
            assert str(path.relative_to(ROOT)) in test_docs.DOCUMENTS, path


def test_the_makefile_has_the_targets_that_documents_name():
    made = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    named = {t for p in TEXTS for part in code_of(p.read_text()) for t in re.findall(r"^(?:\$ )?make (\w+)", part, re.M)}
    assert {"demo", "test"} <= named <= made


# --- the reader itself

@pytest.mark.parametrize("text, words", [
    ("`kernelwright mkae SPEC`", "no command mkae"),
    ("    kernelwright make SPEC --chek quick\n", "no --chek"),
    ("```\n$ kernelwright export hf out --from x\n```\n", "no --from"),
    ("```sh\nKW=1 kernelwright lift a.cu | kernelwright lower - --ref b.cu\n```\n", "no --ref"),
    ("run `scripts/nothing`", "does not exist"),
    ("    python bench/bench.py out --rowz x\n", "knows no --rowz"),
    ("```\nkernelwright make SPEC \\\n  --wrong\n```\n", "no --wrong"),
])
def test_a_command_that_does_not_exist_is_found(text, words):
    assert any(words in p for p in problems(text, helps())), problems(text, helps())


def test_words_that_are_no_commands_are_let_be():
    text = "`kernelwright` in `build/kernelwright`, `import kernelwright`, `~/.cache/kernelwright`\n"
    assert not problems(text, helps())
