"""scripts/prove_all.py without a GPU: beside provers that say what they are told, and beside the real
one on the stand-in driver, which computes nothing."""

import json
import os
import subprocess
import sys

import pytest
from kernelwright_cli import ROOT

CASE = {"name": "sampled B2 1000x777", "verdict": "holds", "findings": [],
        "goldens": [{"output": "o", "rows": 256, "worst_ratio": 0.25},
                    {"output": "lse", "rows": 256, "worst_ratio": 0.5}]}
WRONG = {**CASE, "verdict": "refuted", "findings": [
    {"code": "prove.error", "message": "o: 3 of 256 sampled rows are further from the truth"}],
    "goldens": [{"output": "o", "rows": 256, "worst_ratio": 7.5}]}


def prover(tmp_path):
    """Says what the folder's prove.json holds, and writes down how many of its kind run."""
    path = tmp_path / "prover"
    path.write_text(f"""#!{sys.executable}
import json, os, sys, time
told = json.load(open(sys.argv[1] + "/prove.json"))
running = {str(tmp_path)!r} + "/running"
os.makedirs(running, exist_ok=True)
mark = os.path.join(running, str(os.getpid()))
open(mark, "w").close()
time.sleep(told.get("sleep", 0))
with open({str(tmp_path)!r} + "/most", "a") as most:
    most.write(f"{{len(os.listdir(running))}}\\n")
os.remove(mark)
sys.stderr.write(told.get("said", ""))
print(told["report"] if isinstance(told["report"], str) else json.dumps(told["report"]))
sys.exit(told["exit"])
""")
    path.chmod(0o755)
    return path


def folder(tmp_path, name, exit_code, report, **more):
    made = tmp_path / name
    made.mkdir()
    (made / "prove.json").write_text(json.dumps({"exit": exit_code, "report": report, **more}))
    return made


def report(verdict, *cases, **more):
    return {"verdict": verdict, "cases": cases, "doubt": "", "not_run": 0, "failed": [], **more}


def prove_all(*words, **environment):
    return subprocess.run([sys.executable, ROOT / "scripts/prove_all.py", *map(str, words)], text=True,
                          capture_output=True, timeout=300, env={**os.environ, **environment})


def lines_of(run):
    return [line.split() for line in run.stdout.splitlines()]


def test_a_table_has_a_line_a_kernel_in_the_order_given(tmp_path):
    slow = folder(tmp_path, "slow", 0, report("holds", CASE), sleep=0.5)
    fast = folder(tmp_path, "fast", 0, report("holds", CASE, CASE))
    run = prove_all(slow, fast, "--prove", prover(tmp_path))
    assert run.returncode == 0, run.stderr
    table = lines_of(run)
    assert table[0] == ["kernel", "verdict", "cases", "rows", "error/accepted", "seconds"]
    assert table[1][:5] == [str(slow), "holds", "1", "256", "0.50"]
    assert table[2][:5] == [str(fast), "holds", "2", "512", "0.50"]
    assert float(table[1][5]) >= 0.5 and "2 of 2 kernels hold" in run.stdout


def test_a_kernel_that_is_refuted_is_named_with_its_finding(tmp_path):
    right = folder(tmp_path, "right", 0, report("holds", CASE))
    wrong = folder(tmp_path, "wrong", 1, report("refuted", CASE, WRONG))
    run = prove_all(right, wrong, right, "--prove", prover(tmp_path))
    assert run.returncode == 1
    table = lines_of(run)
    assert table[2][:5] == [str(wrong), "refuted", "2", "512", "7.50"]
    assert "  sampled B2 1000x777: [prove.error] o: 3 of 256 sampled rows" in run.stdout
    assert table[4][1] == "holds" and "2 of 3 kernels hold" in run.stdout


def test_of_many_findings_the_first_are_shown_and_the_others_counted(tmp_path):
    run = prove_all(folder(tmp_path, "wrong", 1, report("refuted", *[WRONG] * 9)), "--prove",
                    prover(tmp_path))
    assert run.stdout.count("[prove.error]") == 3 and "and 6 more" in run.stdout


@pytest.mark.parametrize("exit_code, told, verdict, words", [
    (3, report("inconclusive", CASE, doubt="self-test not run\n"), "inconclusive", "self-test not run"),
    (2, "", "bad_input", "error[prove.json]: has no cases"),
    (70, report("own_fault", CASE, not_run=3), "own_fault", "3 cases were not run"),
    (0, "", "no report", ""),
    (1, report("refuted", {**CASE, "goldens": [{"output": "o", "rows": 1, "worst_ratio": None}]}),
     "refuted", "inf"),
    (3, report("inconclusive", failed=[{"code": "cuda.open", "message": "no driver"}]), "inconclusive",
     "[cuda.open] no driver")])
def test_what_does_not_hold_is_never_taken_for_it(tmp_path, exit_code, told, verdict, words):
    made = folder(tmp_path, "made", exit_code, told, said="error[prove.json]: has no cases")
    run = prove_all(made, "--prove", prover(tmp_path))
    assert run.returncode == 1 and verdict in run.stdout.splitlines()[1] and words in run.stdout


def test_no_more_run_at_a_time_than_asked(tmp_path):
    made = [folder(tmp_path, f"made{n}", 0, report("holds", CASE), sleep=0.3) for n in range(5)]
    assert prove_all(*made, "--jobs", 2, "--prove", prover(tmp_path)).returncode == 0
    assert max(map(int, (tmp_path / "most").read_text().split())) == 2


def test_a_folder_that_make_did_not_write_is_refused_before_anything_runs(tmp_path):
    made = folder(tmp_path, "made", 0, report("holds", CASE))
    run = prove_all(made, tmp_path, "--prove", prover(tmp_path))
    assert run.returncode == 2 and f"{tmp_path} has no prove.json" in run.stderr
    assert not (tmp_path / "most").exists()
    assert prove_all(made, "--jobs", 0, "--prove", prover(tmp_path)).returncode == 2
    assert prove_all(made, "--prove", tmp_path / "none").returncode == 2


def test_the_real_prover_refutes_a_kernel_that_computes_nothing(makes):
    made = makes("prefix_lm").folder
    run = prove_all(made, LD_LIBRARY_PATH=str(ROOT / "build/tests/fake_cuda"),
                    FAKE_CUDA_CAPABILITY="90", FAKE_CUDA_LOG=os.devnull)
    assert run.returncode == 1, run.stderr
    assert lines_of(run)[1][1] == "refuted" and "[prove.unwritten]" in run.stdout
