"""Foreign kernels: a lift by answers, and a change lowered into the kernel's own lines."""

import copy
import hashlib
import json
import os
import shutil
import subprocess

import pytest
from foreign_kernel import FILE, NOTES, answer, causal, description, edit, line, parts, regions
from kernelwright_cli import COMMAND, ROOT, call


@pytest.fixture(scope="module")
def described(tmp_path_factory):
    path = tmp_path_factory.mktemp("foreign") / "kernel.json"
    path.write_text(json.dumps(description()))
    return path


def lift(described, out, api, *more):
    return call("foreign", "lift", described, "--sources", ROOT, "--spec", ROOT / "examples/full.py",
                "--check", "quick", "--out", out, "--api", api, *more)  # fmt: skip


@pytest.fixture(scope="module")
def lifted(described, tmp_path_factory):
    """A whole lift, after one wrong answer of each kind."""
    top = tmp_path_factory.mktemp("lift")
    there = regions()["regions"]
    gap = {"regions": there[1:]}
    overlap = {"regions": [*there, dict(there[0], name="again")]}
    few = {**parts(), "parts": parts()["parts"][:-1]}
    wrong = [
        "no JSON", {"notes": [dict(NOTES["notes"][0], line=1)]}, NOTES,
        gap, overlap, regions(),
        few,
        parts(lambda text: text.replace("mma s =", "mma s <-")),
        parts(lambda text: text.replace("cp_async_wait 1", "cp_async_wait  1")),
        parts(lambda text: text.replace("operand p: element[ROWS, BN]", "operand p: element[ROWS, D]")),
        parts(lambda text: text.replace("j < N", "j < N - 1")),
        parts(),
    ]  # fmt: skip
    run = lift(described, top / "lifted", answer(top / "answers", wrong))
    return top / "lifted", run, top / "answers"


def test_a_lift_goes_on_until_the_program_computes_the_function(lifted):
    folder, run, answers = lifted
    assert run.returncode == 0, run.stderr
    for code in ("1 answer.json", "1 lift.note", "2 lift.region", "1 lift.missing", "1 lift.canonical", "1 check.refuted"):
        assert code in run.stderr
    said = {n: (answers / f"{n:03}.request.md").read_text() for n in range(1, 13)}
    assert "line 1 of 'kernels/sm80/attention_fwd.cu', which is not among" in said[3]
    assert "is code and in no region: `using element = kw::bf16;`" in said[5]
    assert "regions 'constants' and 'again' overlap" in said[6]
    assert "none is left out with a reason: loops and output" in said[8]
    assert "(part 'block of keys')" in said[9] and "mma s <- " in said[9]
    assert "is spelled `        cp_async_wait 1` in canonical text" in said[10]
    assert "counterexample" in said[12] or "refuted" in said[12]
    program = (ROOT / "tests/corpus/sm80_attention_fwd.tl").read_text()
    assert (folder / "kernel.tl").read_text() == program
    state = json.loads((folder / "lift.json").read_text())
    assert state["verdict"] == "holds" and state["who"] == ["by hand"]


def test_a_partial_lift_is_kept_and_goes_on_where_it_was(described, tmp_path):
    out = tmp_path / "lifted"
    half = {**parts(), "parts": parts()["parts"][:3]}
    run = lift(described, out, answer(tmp_path / "first", [NOTES, regions(), half]))
    assert run.returncode == 3, run.stderr
    assert "8 regions (5 missing), 3 parts" in run.stderr and "004.answer" in run.stderr
    rest = {**parts(), "parts": parts()["parts"][3:]}
    run = lift(described, out, answer(tmp_path / "then", [rest]))
    assert run.returncode == 0, run.stderr
    assert not (tmp_path / "then/002.request.md").exists()
    # A third time nobody is asked: what is there is checked again.
    run = lift(described, out, answer(tmp_path / "none", []))
    assert run.returncode == 0 and not list((tmp_path / "none").iterdir())


def test_another_description_does_not_go_on_with_a_lift(lifted, tmp_path):
    other = tmp_path / "kernel.json"
    other.write_text(json.dumps(description(name="another")))
    run = lift(other, lifted[0], answer(tmp_path / "answers", []))
    assert run.returncode == 2 and "holds the lift of another description" in run.stderr


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"files": [{"path": FILE, "sha256": "00"}]}, f"{FILE} has the hash"),
        ({"files": [{"path": "../secret.h"}]}, "files: '../secret.h' is not a path below the sources"),
        ({"read": [{"file": FILE, "first": 1, "last": 9999}]}, "reaches past the file"),
        ({"read": []}, "read: names no lines to lift"),
        ({"target": "sm_10"}, "sm_10"),
        ({"launch": {}}, "launch: threads: is missing"),
    ],
)
def test_a_description_that_is_wrong_is_refused(tmp_path, changes, message):
    path = tmp_path / "kernel.json"
    path.write_text(json.dumps(description(**changes)))
    run = lift(path, tmp_path / "out", answer(tmp_path / "answers", []))
    assert run.returncode == 2 and message in run.stderr, run.stderr
    assert not list((tmp_path / "answers").iterdir())


@pytest.fixture(scope="module")
def changed(lifted, tmp_path_factory):
    program = tmp_path_factory.mktemp("changed") / "causal.tl"
    call("transfer", lifted[0] / "kernel.tl", "--spec", ROOT / "examples/causal.py", "--target", "sm_80",
         "--keep-order", "--out", program)  # fmt: skip
    return program


def lower(lifted, program, out, api, *more):
    return call("foreign", "lower", lifted[0], "--program", program, "--sources", ROOT, "--spec",
                ROOT / "examples/causal.py", "--check", "quick", "--out", out, "--api", api, *more)  # fmt: skip


def changed_edit(**changes):
    out = copy.deepcopy(causal())
    out["edits"][0].update(changes)
    return out


def test_a_change_is_lowered_into_the_kernels_own_lines_and_stays_inconclusive(lifted, changed, tmp_path):
    new = causal()["edits"][0]["text"]
    wrong = [
        changed_edit(file="/etc/hostname"),
        changed_edit(last=9999),
        changed_edit(expect="something else"),
        {**causal(), "edits": [edit("constexpr int RESIDENT", ["constexpr int RESIDENT = 1;"])]},
        changed_edit(text=['#include "/etc/hostname"', *new]),
        changed_edit(text=['        asm volatile("trap;");', *new]),
        {**causal(), "edits": causal()["edits"] + causal()["edits"][:1]},
        {**causal(), "arguments": [{"name": "prefix", "offset": 304}]},
        {**causal(), "parameter_bytes": 312},
        changed_edit(text=[new[0].replace("i + 1", "i + one")]),
    ]
    run = lower(lifted, changed, tmp_path / "out", answer(tmp_path / "answers", [*wrong, causal()]))
    assert run.returncode == 3, run.stderr
    for code in ("file", "range", "expect", "outside", "overlap"):
        assert f"1 edit.{code}" in run.stderr, (code, run.stderr)
    assert "2 edit.directive" in run.stderr and "1 lower.argument" in run.stderr
    assert "1 lower.parameters" in run.stderr and "1 lower.compile" in run.stderr
    said = (tmp_path / "answers/011.request.md").read_text()
    assert 'identifier "one" is undefined' in said and f"{FILE}(" in said and "/tmp" not in said
    assert "not proven" in run.stderr and "kernelwright-prove" in run.stderr
    out = tmp_path / "out"
    assert (out / "kernel.cubin").read_bytes()[:4] == b"\x7fELF" and (out / "prove.json").exists()
    assert json.loads((out / "launch.json").read_text())["parameter_bytes"] == 304
    # The patch is the rules' own change of this kernel, and git takes it.
    copied = tmp_path / FILE
    copied.parent.mkdir(parents=True)
    copied.write_text((ROOT / FILE).read_text())
    subprocess.run(["git", "apply", out / "kernel.patch"], cwd=tmp_path, check=True)
    again = call("lift", copied)
    assert again.stdout == changed.read_text()


def test_the_source_itself_is_built_without_a_question(lifted, tmp_path):
    """For a GPU: whether the source kernel's own output is what its lift says."""
    run = call("foreign", "lower", lifted[0], "--program", lifted[0] / "kernel.tl", "--sources", ROOT, "--spec",
               ROOT / "examples/full.py", "--check", "quick", "--target", "sm_90", "--out", tmp_path / "out",
               "--api", answer(tmp_path / "answers", []))  # fmt: skip
    assert run.returncode == 3 and "not proven" in run.stderr, run.stderr
    assert not list((tmp_path / "answers").iterdir())
    assert (tmp_path / "out/kernel.patch").read_text() == ""
    assert json.loads((tmp_path / "out/launch.json").read_text())["target"] == "sm_90"
    assert (tmp_path / "out/prove.json").exists() and (tmp_path / "out/kernel.cubin").exists()


def test_sources_that_do_not_compile_as_they_are_are_the_descriptions_fault(lifted, tmp_path):
    broken = tmp_path / "lift"
    broken.mkdir()
    text = json.dumps(description(entry="no_such_kernel"))
    state = json.loads((lifted[0] / "lift.json").read_text())
    (broken / "kernel.json").write_text(text)
    (broken / "kernel.tl").write_text((lifted[0] / "kernel.tl").read_text())
    (broken / "lift.json").write_text(json.dumps(state))
    common = ["foreign", "lower", broken, "--program", broken / "kernel.tl", "--sources", ROOT, "--spec",
              ROOT / "examples/full.py", "--check", "quick", "--out", tmp_path / "out",
              "--api", answer(tmp_path / "answers", [])]  # fmt: skip
    run = call(*common)
    assert run.returncode == 2 and "of another kernel.json" in run.stderr, run.stderr
    state["description"] = hashlib.sha256(text.encode()).hexdigest()
    (broken / "lift.json").write_text(json.dumps(state))
    run = call(*common)
    assert run.returncode == 2 and "[foreign.build]" in run.stderr and "no_such_kernel" in run.stderr, run.stderr


PROVER = """#!/bin/sh
echo call >> "$(dirname "$0")/calls"
[ -s "$1/kernel.cubin" ] && [ -s "$1/launch.json" ] && [ -s "$1/prove.json" ] || exit 2
{verdicts}
echo "$1: holds"
"""


@pytest.fixture
def on_gpu(lifted, changed, tmp_path):
    """foreign lower --gpu where the prover says what a test has it say."""
    program = tmp_path / "bin/kernelwright"
    program.parent.mkdir()
    shutil.copy(COMMAND, program)

    def run(verdicts, answers, spec="causal", to=changed):
        prover = program.with_name("kernelwright-prove")
        prover.write_text(PROVER.format(verdicts=verdicts))
        prover.chmod(0o755)
        words = ["foreign", "lower", lifted[0], "--program", to, "--sources", ROOT, "--spec",
                 ROOT / f"examples/{spec}.py", "--check", "quick", "--out", tmp_path / "out", "--gpu",
                 "--attempts", "2", "--api", answer(tmp_path / "answers", answers)]  # fmt: skip
        return subprocess.run([program, *words], cwd=ROOT, text=True, capture_output=True,
                              env={**os.environ, "KERNELWRIGHT_HOME": str(ROOT)})  # fmt: skip

    return run


FIRST_IS_WRONG = 'if [ "$(wc -l < "$(dirname "$0")/calls")" = 1 ]; then echo "$1: [prove.error] o: row 7"; exit 1; fi'


def test_what_a_gpu_finds_goes_back_until_it_holds(on_gpu, tmp_path):
    run = on_gpu(FIRST_IS_WRONG, [causal(), causal()])
    assert run.returncode == 0 and "proven:\nOUT: holds" in run.stderr and "1 lower.probe" in run.stderr, run.stderr
    said = (tmp_path / "answers/002.request.md").read_text()
    assert "OUT: [prove.error] o: row 7" in said and "/tmp" not in said
    assert (tmp_path / "out/kernel.cubin").exists()


def test_what_a_gpu_refutes_is_no_result(on_gpu, tmp_path):
    run = on_gpu('echo "[prove.error] lse: row 3"; exit 1', [causal(), causal()])
    assert run.returncode == 3 and "2 lower.probe" in run.stderr and "lse: row 3" in run.stderr, run.stderr
    assert (tmp_path / "out/best.patch").exists() and not (tmp_path / "out/kernel.cubin").exists()


def test_without_a_word_from_a_gpu_nothing_is_proven(on_gpu):
    run = on_gpu("echo no GPU; exit 3", [causal()])
    assert run.returncode == 3 and "no GPU\nnot proven" in run.stderr, run.stderr


def test_a_gpu_refutes_a_lift_by_its_source(on_gpu, lifted, tmp_path):
    run = on_gpu(FIRST_IS_WRONG, [], "full", lifted[0] / "kernel.tl")
    assert run.returncode == 1 and "o: row 7" in run.stderr and not list((tmp_path / "answers").iterdir()), run.stderr


def test_a_wrong_program_is_refuted_before_anybody_is_asked(lifted, changed, tmp_path):
    program = tmp_path / "wrong.tl"
    program.write_text(changed.read_text().replace("min(N, i + 1), s", "min(N, i + 2), s"))
    assert program.read_text() != changed.read_text()
    run = lower(lifted, program, tmp_path / "out", answer(tmp_path / "answers", []))
    assert run.returncode == 1 and not list((tmp_path / "answers").iterdir()), run.stderr


def test_the_best_attempt_is_kept_where_answers_end(lifted, changed, tmp_path):
    broken = changed_edit(text=["        kw::no_such_thing();"])
    run = lower(lifted, changed, tmp_path / "out", answer(tmp_path / "answers", [broken]), "--attempts", "1")
    assert run.returncode == 3 and "1 lower.compile" in run.stderr, run.stderr
    assert "no_such_thing" in (tmp_path / "out/best.patch").read_text()
    assert not (tmp_path / "out/kernel.cubin").exists()
