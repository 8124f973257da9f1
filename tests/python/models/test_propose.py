"""Transfer by whoever answers: a folder of answers in the model's place, on a real function.

tests/propose/prefix_lm.answer.json is what the rules write for examples/prefix_lm.py, as an answer
(tests/propose/make_fixture.py makes it). Answers are written beforehand as 001.answer.md, 002.answer.md, ...
"""

import json
import re

import pytest

from kernelwright_cli import ROOT, assert_refused, call

PROGRAM = ROOT / "tests/corpus/sm90_attention_fwd.tl"
GOOD = (ROOT / "tests/propose/prefix_lm.answer.json").read_text()


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tmp_path_factory.mktemp("propose") / "spec"
    run = call("capture", ROOT / "examples/prefix_lm.py", "--out", folder)
    assert run.returncode == 0, run.stderr
    return folder


def ask(folder, spec, answers, *words):
    (folder / "asked").mkdir()
    for n, answer in enumerate(answers, 1):
        data = answer if isinstance(answer, bytes) else answer.encode()
        (folder / f"asked/{n:03}.answer.md").write_bytes(data)
    return call("transfer", PROGRAM, "--spec", spec, "--proposer", "model", "--api", f"folder:{folder}/asked",
                "--check", "quick", "--out", folder / "x.tl", *words)


def without(answer, *properties):
    answer = json.loads(answer)
    for name in properties:
        del answer[name]
    return json.dumps(answer)


def test_an_answer_gives_the_program_that_the_rules_write(spec, tmp_path):
    run = ask(tmp_path, spec, [GOOD], "--transcript", tmp_path / "said.jsonl")
    assert run.returncode == 0, run.stderr
    assert "model (by hand): 1 attempt: none refused" in run.stderr
    rules = call("transfer", PROGRAM, "--spec", spec)
    assert (tmp_path / "x.tl").read_text() == rules.stdout
    question = (tmp_path / "asked/001.request.md").read_text()
    source = (ROOT / "examples/prefix_lm.py").read_text()
    assert "v3: i32[B]" in question and "j < v3[b]" in question
    assert "prefix" not in question and source.splitlines()[0] not in question
    again = call("transfer", PROGRAM, "--spec", spec, "--proposer", "model", "--api",
                 f"replay:{tmp_path}/said.jsonl", "--check", "quick")
    assert again.returncode == 0 and again.stdout == rules.stdout, again.stderr


def test_every_wrong_answer_is_told_why_and_the_best_attempt_is_kept(spec, tmp_path):
    wrong = GOOD.replace("max(i + 1, kept)", "max(i, kept)")
    assert wrong != GOOD
    elsewhere = json.loads(GOOD)
    elsewhere["edits"][0]["file"] = "src/check/check.cpp"
    answers = [wrong, "no JSON", GOOD[:-30], b'{"why": "\xff"}', without(GOOD, "why"), json.dumps(elsewhere),
               json.dumps({**json.loads(GOOD), "verdict": "holds"}),
               GOOD.replace("let kept = v3[c.b]", "let kept = v3[c.h, c.b]")]
    run = ask(tmp_path, spec, answers, "--attempts", str(len(answers)))
    assert_refused(run, "propose.none", "8 attempts:", "3 answer.schema", "2 answer.json",
                   "1 answer.utf8", "1 check.refuted", "1 types.C5", exit_code=3)
    assert not (tmp_path / "x.tl").exists()
    best = (tmp_path / "x.tl.best.tl").read_text()
    assert "max(i, kept)" in best
    attempts = json.loads((tmp_path / "x.tl.attempts.json").read_text())["attempts"]
    assert [a["code"] for a in attempts] == ["check.refuted", "answer.json", "answer.json", "answer.utf8",
                                             "answer.schema", "answer.schema", "answer.schema", "types.C5"]
    assert {a["who"] for a in attempts} == {"by hand"}
    second = (tmp_path / "asked/002.request.md").read_text()
    assert "check.refuted" in second and "first statement that differs" in second and "prefix" not in second


def test_a_question_that_nobody_has_answered_yet_ends_with_three(spec, tmp_path):
    run = ask(tmp_path, spec, [])
    assert_refused(run, "propose.none", "001.answer.md", exit_code=3)
    run = ask_again(tmp_path, spec)
    assert run.returncode == 0, run.stderr


def ask_again(folder, spec):
    (folder / "asked/001.answer.md").write_text(GOOD)
    return call("transfer", PROGRAM, "--spec", spec, "--proposer", "model", "--api", f"folder:{folder}/asked",
                "--check", "quick", "--out", folder / "x.tl")


def test_a_model_makes_a_kernel_with_everything_that_the_rules_have(spec, tmp_path):
    (tmp_path / "asked").mkdir()
    (tmp_path / "asked/001.answer.md").write_text(GOOD)
    run = call("make", spec, "--proposer", "model", "--api", f"folder:{tmp_path}/asked", "--check", "quick",
               "--out", tmp_path / "made")
    assert run.returncode == 0, run.stderr
    certificate = json.loads((tmp_path / "made/certificate.json").read_text())
    assert certificate["transfer"]["proposer"] == "model (by hand)"
    assert [b["argument"] for b in certificate["transfer"]["bindings"]] == ["q", "k", "v", "o", "prefix"]
    assert "from/attempts.json" in certificate["files"]
    assert re.search(r"\n\+ +const int kept = args.prefix", (tmp_path / "made/kernel.patch").read_text())
    verified = call("verify", tmp_path / "made")  # the bindings again, by what no proposer decides
    assert verified.returncode == 0 and "transfer  still holds" in verified.stderr, verified.stderr


def test_without_somebody_to_ask_the_user_hears_what_to_say(spec, tmp_path):
    run = call("transfer", PROGRAM, "--spec", spec, "--proposer", "model", "--api", "no-such-api",
               "--out", tmp_path / "x.tl")
    assert_refused(run, "model.bad_request", "no-such-api")
