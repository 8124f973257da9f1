"""`kernelwright eval --question qimeng`: kernels that nobody has written, in one step, in two, and in CuTe."""

import json
import re

import pytest

from kernelwright_cli import ROOT, assert_refused, call, write_spec
from model_server import NO_KEYS, chat, serving

CAUSAL = """i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])[None]
    return (q @ k.mT * 64**-0.5).masked_fill(j > i, -torch.inf).softmax(-1) @ v"""
CUTE = """#include <cute/tensor.hpp>
struct Args { float* o; int N; };
extern "C" __global__ void attention_fwd(const __grid_constant__ Args args) {
  if (threadIdx.x < args.N) args.o[threadIdx.x] = cute::one();
}"""


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """(captured folder, the right sketch, the right scheduled program, a folder of headers)."""
    top = tmp_path_factory.mktemp("writing")
    plain = (ROOT / "sketches/attention.tl").read_text().replace("D = 128, V = 128", "D = 64, V = 64")
    (top / "sketch.tl").write_text(plain.replace("where(j < N,", "where(j < min(N, i + 1),"))
    for words in (["capture", write_spec(top, CAUSAL, shape="2, 4, 96, 64"), "--out", top / "spec"],
                  ["size", top / "sketch.tl", "--gpu", "a100", "--out", top / "sized.tl"],
                  ["schedule", top / "sized.tl", "--gpu", "a100", "--out", top / "kernel.tl"]):
        run = call(*words)
        assert run.returncode == 0, run.stderr
    # What is compiled here is no CuTe: CUTLASS's headers take NVRTC a minute. tests/python/make/test_cute.py has them.
    for name, text in (("cute/tensor.hpp", "namespace cute { __device__ inline float one() { return 1; } }\n"),
                       ("cuda/std/cstdint", "")):
        (top / "headers" / name).parent.mkdir(parents=True)
        (top / "headers" / name).write_text(text)
    return top / "spec", (top / "sketch.tl").read_text(), (top / "kernel.tl").read_text(), top / "headers"


def lines(text):
    return json.dumps({"why": "", "lines": [line for line in text.splitlines() if not line.startswith("# ")]})


def tiles(keys):
    return json.dumps({"why": "", "rows": 128, "keys": keys, "warpgroups": 1})


def changed(text, old, new):
    assert old in text
    return lines(text.replace(old, new))


class Model:
    """Answers each kind of question by the next line of its script; what was asked is kept."""

    KINDS = {"You write a sketch": "sketch", "You choose the tile": "tiles", "is written in TL": "kernel", "with CuTe": "cute"}

    def __init__(self, **script):
        self.script, self.told = {kind: iter(answers) for kind, answers in script.items()}, []

    def __call__(self, handler):
        system, user = (m["content"] for m in handler.server.requests[-1]["body"]["messages"])
        kind = next(kind for words, kind in self.KINDS.items() if words in system)
        self.told.append((kind, system, user))
        chat(next(self.script[kind]), tokens=(1000, 100))(handler)


def evaluate(server, spec, *words):
    return call("eval", spec, "--question", "qimeng", "--api", "chat", "--model", "tiny", "--endpoint", server.endpoint,
                "--jobs", 1, "--check", "quick", *words, **NO_KEYS)


def test_one_step_and_two_are_judged_alike_and_counted_apart(task, tmp_path):
    spec, sketch, kernel, _ = task
    model = Model(
        kernel=[lines(kernel), changed(kernel, "mma_add acc += p @", "mma_add acc += s @"),
                changed(kernel, "mma s = q_s[me] @", "mma s = p @"), changed(kernel, "param BN = 128", "param BN = 256")],
        sketch=[lines(sketch), "no", changed(sketch, "i + 1", "i + 2"), lines(sketch)],
        tiles=[tiles(256), tiles(64)])  # fmt: skip
    asked = ["--arm", "one-step", "--arm", "two-steps", "--samples", 2, "--attempts", 3]
    with serving(model) as server:
        run = evaluate(server, spec, *asked, "--json", "--transcript", tmp_path / "said.jsonl")
    assert run.returncode == 0, run.stderr
    table = json.loads(run.stdout)
    rows = {(r["arm"], r["first_answer"]): r for r in table["rows"]}
    assert {key: row["pass@1"] for key, row in rows.items()} == {
        ("one-step", True): 0.5, ("one-step", False): 0.5, ("two-steps", True): 0, ("two-steps", False): 0.5}
    one, two = rows["one-step", False], rows["two-steps", False]
    assert one["refused"] == {"mma_add.C2": 1, "mma.C3": 1, "launch.shared": 1}
    assert (one["missing to_operand"], one["transposed"], one["ends"]) == (1, 1, {"launch.shared": 1})
    assert two["refused"] == {"sketch.fit": 1, "answer.json": 1, "check.refuted": 1}
    # A sketch that was accepted with the last answer is no kernel yet.
    assert (two["missing to_operand"], two["transposed"], two["ends"]) == (0, 0, {"budget.attempts": 1})
    assert rows["two-steps", True]["ends"] == {"sketch.fit": 1, "answer.json": 1}
    steps = [[(q["step"], q["code"]) for q in s["questions"]] for s in table["samples"] if s["arm"] == "two-steps"]
    assert steps == [[("sketch", ""), ("tiles", "sketch.fit"), ("tiles", "")],
                     [("sketch", "answer.json"), ("sketch", "check.refuted"), ("sketch", "")]]

    # All are asked about the same function, and nobody is shown what is asked for.
    functions = {re.search(r"FUNCTION\n(.*?)END OF FUNCTION", user, re.S)[1] for kind, _, user in model.told if kind != "tiles"}
    assert len(functions) == 1 and "j <= i" in functions.pop()
    assert not any("fill m = -inf" in system for _, system, _ in model.told)
    again = call("eval", spec, "--question", "qimeng", "--api", f"replay:{tmp_path}/said.jsonl", "--jobs", 1,
                 "--check", "quick", *asked)
    assert again.returncode == 0, again.stderr
    assert "two steps, with feedback: 1 of 2 failed: 1 budget.attempts; 0 missing to_operand; 0 transposed" in again.stdout


def test_what_compiles_in_cute_is_undecided_and_never_passes(task):
    spec, _, _, headers = task
    model = Model(cute=[lines(CUTE), "no", lines(CUTE.replace("tensor.hpp>", 'tensor.hpp>\n#include "/etc/passwd"')),
                        lines(CUTE.replace("one()", "two()")), lines(CUTE.replace("attention_fwd", "other"))])
    with serving(model) as server:
        run = evaluate(server, spec, "--arm", "cute", "--headers", headers, "--samples", 2, "--attempts", 4, "--json")
    assert run.returncode == 0, run.stderr
    row = json.loads(run.stdout)["rows"][1]
    assert (row["pass@1"], row["undecided"], row["failed"]) == (0, 1, 1)
    assert row["missing to_operand"] is None and row["transposed"] is None
    codes = [[q["code"] for q in s["questions"]] for s in json.loads(run.stdout)["samples"]]
    assert codes[0] == ["cute.inconclusive"] and codes[1][:3] == ["answer.json", "cute.include", "build.compile"]
    assert codes[1][3].startswith("build.") or codes[1][3].startswith("cubin."), codes
    assert 'has no member "two"' in model.told[4][2]  # as the compiler says
    assert not any("root:" in user for _, _, user in model.told)


def test_arms_of_two_questions_and_cute_without_headers_are_refused(task):
    spec = task[0]
    assert_refused(call("eval", spec, "--arm", "tl", "--arm", "cute", "--api", "folder:x"), "eval.arm", "one-step")
    assert_refused(call("eval", spec, "--question", "qimeng", "--arm", "tl", "--api", "folder:x"), "eval.arm")
    assert_refused(call("eval", spec, "--question", "qimeng", "--api", "folder:x"), "cute.headers", "--headers")
