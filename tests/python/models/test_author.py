"""A sketch, and the tiles of one, by whoever answers: a folder of answers in the model's place."""

import json
import re

import pytest

from kernelwright_cli import ROOT, assert_refused, call, write_spec

SKETCH = ROOT / "sketches/attention.tl"
CAUSAL = """i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])[None]
    return (q @ k.mT * 64**-0.5).masked_fill(j >= i + shift, -torch.inf).softmax(-1) @ v"""


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    top = tmp_path_factory.mktemp("author")
    file = write_spec(top, CAUSAL, more=", shift: int", values=", 3", shape="2, 4, 96, 64")
    run = call("capture", file, "--out", top / "spec")
    assert run.returncode == 0, run.stderr
    return top / "spec"


def sketch():
    """The plain sketch with this function's mask, as an author who has read the question would write it."""
    text = "\n".join(line for line in SKETCH.read_text().splitlines() if not line.startswith("#"))
    text = text.replace("D = 128, V = 128", "D = 64, V = 64").replace("    scale: f32", "    v3: i32\n    scale: f32")
    changed = text.replace("where(j < N,", "where(j < min(N, i + v3),")
    assert changed.count("v3") == 2
    return changed


def lines(text):
    return json.dumps({"why": "block by block", "lines": text.splitlines()})


def tiles(rows, keys, warpgroups):
    return json.dumps({"why": "they fit", "rows": rows, "keys": keys, "warpgroups": warpgroups})


def ask(folder, answers, *words):
    (folder / "asked").mkdir()
    for n, answer in enumerate(answers, 1):
        data = answer if isinstance(answer, bytes) else answer.encode()
        (folder / f"asked/{n:03}.answer.md").write_bytes(data)
    return call(*words, "--api", f"folder:{folder}/asked", "--out", folder / "x.tl")


def draw(folder, spec, answers, *words):
    return ask(folder, answers, "sketch", spec, "--gpu", "a100", "--check", "quick", *words)


def test_a_sketch_that_somebody_writes_becomes_a_checked_program(spec, tmp_path):
    run = draw(tmp_path, spec, [lines(sketch())], "--scheduled", tmp_path / "kernel.tl", "--transcript",
               tmp_path / "said.jsonl")
    assert run.returncode == 0, run.stderr
    assert "sketch: model (by hand): 1 attempt: none refused" in run.stderr
    written = (tmp_path / "x.tl").read_text()
    assert "shift: i32" in written and "v3" not in written

    # What was checked is what the passes make of it, for whoever runs them.
    for words in (["size", tmp_path / "x.tl", "--gpu", "a100", "--out", tmp_path / "sized.tl"],
                  ["schedule", tmp_path / "sized.tl", "--gpu", "a100", "--out", tmp_path / "again.tl"]):
        assert call(*words).returncode == 0
    assert (tmp_path / "again.tl").read_text() == (tmp_path / "kernel.tl").read_text()

    # The author sees the formula under names of ours, and no sketch of attention.
    question = (tmp_path / "asked/001.request.md").read_text()
    assert "v3: i32" in question and "shift" not in question and "attention.py" not in question
    assert "mma s = q_s @ k_s.T" in question and "online_max m, factor, s" in question and "total(l)\n" not in question
    said = json.loads((tmp_path / "said.jsonl").read_text().splitlines()[0])
    assert said["request"]["stage"] == "sketch" and said["answer"]["who"] == "by hand"


WRONG = {
    "answer.utf8": b'{"why": "\xff", "lines": []}',
    "answer.empty": " \n",
    "answer.json": "level sketch",
    "answer.schema": json.dumps({"why": "", "lines": [], "verdict": "holds"}),
    "answer.lines": lines("level sketch\telement"),
    "tl.syntax": lines(sketch().replace("mma s = q_s @ k_s.T", "mma s = q_s @@ k_s.T")),
    "edit.arguments": lines(sketch().replace("    o: out element[B, H, M, V]\n", "")),
    "edit.include": lines('include "/etc/passwd"\n' + sketch()),
    "plan.C2": lines(sketch().replace("exp2(fma(s[i, j], scale", "exp2(fma(s[i, j], scala")),
    "sketch.place": lines(sketch().replace("            mma_add acc += s @ v_s\n", "")),
    "check.refuted": lines(sketch().replace("i + v3", "i + v3 + 1")),
}


def test_every_wrong_sketch_is_told_why_and_counted(spec, tmp_path):
    run = draw(tmp_path, spec, WRONG.values(), "--attempts", len(WRONG))
    assert_refused(run, "author.none", f"no answer gave a sketch: {len(WRONG)} attempts:", "1 tl.syntax",
                   "1 check.refuted", exit_code=3)
    assert not (tmp_path / "x.tl").exists()
    attempts = json.loads((tmp_path / "x.tl.attempts.json").read_text())["attempts"]
    assert [a["code"] for a in attempts] == list(WRONG)
    assert {a["step"] for a in attempts} == {"sketch"} and {a["who"] for a in attempts} == {"by hand"}
    for n, code in enumerate(list(WRONG)[:-1], 2):
        question = (tmp_path / f"asked/{n:03}.request.md").read_text()
        assert f"It was refused.\n\n{code}: " in question


def test_a_wrong_sketch_is_mended_by_what_was_said_of_it(spec, tmp_path):
    run = draw(tmp_path, spec, [WRONG["check.refuted"], lines(sketch())])
    assert run.returncode == 0, run.stderr
    assert "2 attempts: 1 check.refuted" in run.stderr
    second = (tmp_path / "asked/002.request.md").read_text()
    assert "first statement that differs is `map_at" in second and "i + v3 + 1" in second and "shift" not in second


def size(folder, answers, *words, gpu="a100"):
    return ask(folder, answers, "size", SKETCH, "--gpu", gpu, "--proposer", "model", *words)


def test_tiles_that_somebody_chooses_are_sized_as_the_passes_size_theirs(tmp_path):
    run = size(tmp_path, [tiles(128, 64, 1)])
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "x.tl").read_text() == call("size", SKETCH, "--gpu", "a100").stdout
    question = (tmp_path / "asked/001.request.md").read_text()
    assert "at most 166912 of them for a CTA" in question and "shared k_s: 2 slots of keys x 128" in question


@pytest.mark.parametrize("gpu, given, code, parts", [
    ("a100", (128, 256, 1), "sketch.fit", ["229376 bytes", "k_s: 2 of 256 x 128 x 2 bytes = 131072", "BN = 64 would fit"]),
    ("a100", (128, 96, 1), "sketch.fit", ["accumulators take 224 registers", "leaves 192", "BN = 48 would fit"]),
    ("h200", (64, 176, 2), "sketch.fit", ["operand take 196 registers", "leaves 177"]),
    ("h200", (128, 64, 2), "sketch.tiles", ["ROWS is 128", "have 64 rows"]),
    ("h200", (64, 64, 1), "sketch.tiles", ["WARPGROUPS is 1", "2 or 3"]),
    ("a100", (64, 40, 1), "sketch.tiles", ["BN is 40", "multiple of 16"]),
    ("a100", (64, 64, 9), "sketch.tiles", ["WARPGROUPS is 9"]),
    ("a100", (64, 0, 1), "answer.tiles", ["keys is 0"]),
    ("a100", (64, -64, 1), "answer.tiles", ["keys is -64"]),
    ("a100", (64, 2**70, 1), "answer.schema", ["keys"]),
], ids=str)  # fmt: skip
def test_tiles_that_do_not_fit_are_refused_with_the_sum(gpu, given, code, parts, tmp_path):
    run = size(tmp_path, [tiles(*given)], "--attempts", 1, gpu=gpu)
    assert_refused(run, "author.none", f"1 attempt: 1 {code}", *parts, exit_code=3)
    assert not (tmp_path / "x.tl").exists()


def test_tiles_are_asked_for_again_with_the_budgets_sum(tmp_path):
    run = size(tmp_path, ["64", b"\xff", tiles(128, 256, 1), tiles(64, 64, 2)])
    assert run.returncode == 0, run.stderr
    assert re.search(r"tiles: model \(by hand\): 4 attempts: 1 answer.schema, 1 answer.utf8, 1 sketch.fit", run.stderr)
    assert "k_s: 2 of 256 x 128 x 2 bytes = 131072" in (tmp_path / "asked/004.request.md").read_text()
    assert "param ROWS = 64, WARPGROUPS = 2" in (tmp_path / "x.tl").read_text()


def test_nobody_who_answers_ends_with_three_and_goes_on_later(tmp_path):
    run = size(tmp_path, [])
    assert_refused(run, "author.none", "001.answer.md", exit_code=3)
    (tmp_path / "asked/001.answer.md").write_text(tiles(64, 64, 2))
    run = call("size", SKETCH, "--gpu", "a100", "--proposer", "model", "--api", f"folder:{tmp_path}/asked")
    assert run.returncode == 0 and "WARPGROUPS = 2" in run.stdout, run.stderr
