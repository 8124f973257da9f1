"""The grammar of answers that `kernelwright grammar` gives, held against the reader of TL."""

import json
import random
import subprocess

import pytest

from gbnf import Grammar
from kernelwright_cli import ROOT, call

READ = ROOT / "build/tests/read_lines"
PROGRAMS = sorted((ROOT / "tests/corpus").glob("*.tl"))


@pytest.fixture(scope="module")
def grammar():
    run = call("grammar", "--format", "gbnf")
    assert run.returncode == 0, run.stderr
    return Grammar(run.stdout)


def read(lines, *words):
    run = subprocess.run([READ, *words], input="\n".join(lines) + "\n", text=True, capture_output=True,
                         timeout=100, check=True)
    said = run.stdout.splitlines()
    assert len(said) == len(lines)
    return said


def test_every_sentence_of_the_grammar_can_be_read(grammar):
    draw = random.Random(7)
    kinds = [name for name in grammar.rules if name.startswith("s-")]
    sentences = [grammar.draw(draw, name) for name in kinds for _ in range(12)]
    sentences += [grammar.draw(draw, "statement", 20) for _ in range(1200 - min(1200, len(sentences)))]
    assert len(set(sentences)) > 1000
    refused = [(s, said) for s, said in zip(sentences, read(sentences)) if said != "ok"]
    assert not refused, refused[:3]


def test_every_answer_of_the_grammar_is_an_answer(grammar):
    draw = random.Random(8)
    answers = [grammar.draw(draw, "root") for _ in range(100)]
    refused = [(a, said) for a, said in zip(answers, read(answers, "--answers")) if said != "ok"]
    assert not refused, refused[:3]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_the_grammar_gives_every_line_of_the_corpus(grammar, program):
    for line in program.read_text().splitlines():
        if not line.startswith("include "):
            assert grammar.gives(line, "line"), line


def test_the_grammar_gives_an_answer_as_the_schema_describes_it(grammar):
    answer = {"why": 'as "said"', "edits": [
        {"op": "replace", "first": 3, "last": 4, "expect": "count t", "text": ["    let a = b + 1"]},
        {"op": "delete", "first": 7, "last": 7, "expect": "fence_async", "text": []}]}
    assert grammar.gives(json.dumps(answer), "root")
    answer["edits"][0]["file"] = "kernel.cu"
    assert not grammar.gives(json.dumps(answer), "root")


@pytest.mark.parametrize("line", ["include \"kw/kw.cuh\"", "#include <x>", "let a = not not b", "let a = (b",
                                  "let a = where(b, c)", "let a = b < c < d", "let a = inf", "count t;",
                                  "let a = b & c & d", "asm volatile"])
def test_the_grammar_does_not_give_what_cannot_be_read(grammar, line):
    assert not grammar.gives(line, "statement")
    if not line.startswith("include"):  # a statement, but not one that an edit may write
        assert read([line]) != ["ok"]


def test_the_schema_is_what_an_answer_is_held_to():
    run = call("grammar", "--format", "json-schema")
    schema = json.loads(run.stdout)
    assert schema["required"] == ["edits", "why"] and schema["additionalProperties"] is False
    edit = schema["properties"]["edits"]["items"]
    assert edit["properties"]["op"]["enum"] == ["replace", "insert_before", "insert_after", "delete"]
    for properties in (schema, edit):
        assert sorted(properties["properties"]) == sorted(properties["required"])
