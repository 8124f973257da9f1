"""`kernelwright eval` against a server on this machine that knows the right answer, and gives it or not."""

import difflib
import json
import re

import pytest

from kernelwright_cli import ROOT, assert_refused, call, write_spec
from model_server import NO_KEYS, chat, serving

PROGRAM = ROOT / "tests/corpus/sm80_attention_fwd.tl"  # whose check takes two seconds
KERNEL = ROOT / "kernels/sm80/attention_fwd.cu"
CAUSAL = """i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])[None]
    return (q @ k.mT * 128**-0.5).masked_fill(j > i, -torch.inf).softmax(-1) @ v"""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """(captured folder, {arm: the lines that the rules would leave})."""
    top = tmp_path_factory.mktemp("eval")
    spec = top / "spec"
    for words in (["capture", write_spec(top, CAUSAL), "--out", spec],
                  ["transfer", PROGRAM, "--spec", spec, "--target", "sm_80", "--out", top / "x.tl"],
                  ["lower", top / "x.tl", "--reference", KERNEL, "--out", top / "x.cu"]):
        run = call(*words)
        assert run.returncode == 0, run.stderr
    return spec, {"tl": (top / "x.tl").read_text().splitlines(), "cuda": (top / "x.cu").read_text().splitlines()}


def edits(old, new):
    found = []
    for what, first, last, begin, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "insert":
            found.append({"op": "insert_after", "first": first, "last": first, "expect": old[first - 1].strip(),
                          "text": new[begin:end]})
        elif what != "equal":
            found.append({"op": "delete" if what == "delete" else "replace", "first": first + 1, "last": last,
                          "expect": old[first].strip(), "text": new[begin:end]})
    return json.dumps({"why": "as the rules", "edits": found})


def replaced(lines, old, new):
    at = next(n for n, line in enumerate(lines) if old in line)
    return [*lines[:at], lines[at].replace(old, new), *lines[at + 1:]]


class Model:
    """Answers by a script: for each arm, for each conversation, what to say. `right` is the rules' program."""

    def __init__(self, right, script):
        self.right, self.script, self.told, self.begun = right, script, [], {"tl": 0, "cuda": 0}

    def __call__(self, handler):
        system, user = (m["content"] for m in handler.server.requests[-1]["body"]["messages"])
        arm = "cuda" if "CUDA" in system else "tl"
        first = "This is the first attempt." in user
        self.begun[arm] += first
        self.attempt = 0 if first else self.attempt + 1
        self.told.append((arm, user))
        shown = re.findall(r"^ *\d+\|(.*)$", user.split("END OF PROGRAM")[0], re.M)
        answer = self.script[arm][self.begun[arm] - 1][self.attempt](shown, self.right[arm])
        chat(answer, tokens=(1000, 100))(handler)


def right(shown, wanted):
    return edits(shown, wanted)


def no_json(shown, wanted):
    return "I would rather not."


def without_reshape(shown, wanted):
    return edits(shown, replaced(shown, "acc += p @", "acc += s @"))


def along_the_wrong_side(shown, wanted):
    return edits(shown, replaced(shown, "s = q_s[me] @", "s = p @"))


def below_the_vocabulary(shown, wanted):
    return edits(shown, replaced(shown, "kw::sync_block();", "kw::sync_block(); __syncthreads();"))


SCRIPT = {"tl": [[right], [without_reshape, along_the_wrong_side]],
          "cuda": [[no_json, right], [below_the_vocabulary, no_json]]}


ASKED = ["--samples", 2, "--attempts", 2, "--jobs", 1, "--check", "quick", "--target", "sm_80"]


def evaluate(server, spec, *words):
    return call("eval", spec, "--api", "chat", "--model", "tiny", "--endpoint", server.endpoint, *ASKED,
                "--price-in", 1, "--price-out", 10, *words, **NO_KEYS)


def test_the_table_counts_what_passed_by_which_way_and_why_the_rest_did_not(task):
    spec, program = task
    model = Model(program, SCRIPT)
    with serving(model) as server:
        run = evaluate(server, spec, "--json")
    assert run.returncode == 0, run.stderr
    rows = {(r["arm"], r["first_answer"]): r for r in json.loads(run.stdout)["rows"]}
    assert {key: row["pass@1"] for key, row in rows.items()} == {
        ("cuda", True): 0, ("cuda", False): 0.5, ("tl", True): 0.5, ("tl", False): 0.5}
    assert all(row["pass@3"] is None for row in rows.values())
    assert rows["tl", False]["refused"] == {"mma_add.C2": 1, "mma.C3": 1}
    assert (rows["tl", False]["missing to_operand"], rows["tl", False]["transposed"]) == (1, 1)
    assert (rows["tl", True]["missing to_operand"], rows["tl", True]["transposed"]) == (1, 0)
    assert rows["cuda", False]["ends"] == {"answer.json": 1}
    assert rows["cuda", False]["refused"] == {"answer.json": 2, "lift.unrecognised": 1}
    assert rows["cuda", False]["tokens"] == 4400 and rows["cuda", True]["tokens"] == 2200
    assert rows["cuda", False]["dollars"] == pytest.approx(4 * 0.002)

    # Both were asked about the same function; what was told of a wrong answer differs.
    tl, cuda = ([user for arm, user in model.told if arm == which] for which in ("tl", "cuda"))
    function = re.search(r"FUNCTION\n(.*?)END OF FUNCTION", tl[0], re.S)[1]
    assert function in cuda[0] and "attention.py" not in function
    assert "mma_add.C2" in tl[2] and "__syncthreads" in cuda[3]
    assert not any("gemm_" in user.split("END OF FUNCTION")[1] for user in cuda)


def test_a_transcript_gives_the_same_table_without_anybody_to_ask(task, tmp_path):
    spec, program = task
    script = {"tl": [[no_json, without_reshape], [without_reshape, along_the_wrong_side]]}
    with serving(Model(program, script)) as server:
        run = evaluate(server, spec, "--arm", "tl", "--transcript", tmp_path / "said.jsonl")
    again = call("eval", spec, "--api", f"replay:{tmp_path}/said.jsonl", *ASKED, "--arm", "tl")
    assert run.returncode == again.returncode == 0, run.stderr + again.stderr
    for said in (run.stdout, again.stdout):
        assert re.search(r"^TL, first answer +0\.00 +- +- ", said, re.M), said
        assert ("TL, with feedback: 2 of 2 failed: 1 mma.C3, 1 mma_add.C2; 2 missing to_operand; 1 transposed"
                in said), said


def test_nobody_who_answers_is_no_result(task):
    spec, _ = task
    run = call("eval", spec, "--api", "chat", "--model", "tiny", "--endpoint", "http://127.0.0.1:9", "--retries", 0,
               "--samples", 1, **NO_KEYS)
    assert_refused(run, "model.unreachable", "127.0.0.1", exit_code=3)
    assert run.stdout == ""
