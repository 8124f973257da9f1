"""The commands from outside: what they take, what they print, what they refuse and how."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

from kernelwright_cli import COMMAND, KERNEL, ROOT, SCREEN, assert_refused, call, write_spec

PROGRAM = ROOT / "tests/corpus/sm90_attention_fwd.tl"


@pytest.fixture(scope="session")
def captured(tmp_path_factory):
    """Plain attention, captured once; every command takes the folder where it takes a spec."""
    top = tmp_path_factory.mktemp("captured")
    run = call("capture", write_spec(top), "--out", top / "spec")
    assert run.returncode == 0, run.stderr
    return top / "spec"


GATED = """import torch
def gated(q, k, v, gate):
    scores = q @ k.mT * 64 ** -0.5
    out = scores.softmax(-1) @ v
    return out * torch.sigmoid(gate)

def example_inputs():
    return [torch.randn(1, 2, 40, 64, dtype=torch.bfloat16) for _ in range(4)]
"""


def test_a_refusal_points_at_the_operators_own_line(tmp_path):
    (tmp_path / "gated.py").write_text(GATED)
    run = call("make", tmp_path / "gated.py", "--out", tmp_path / "out")
    assert run.returncode == 2, run.stdout + run.stderr
    assert "gated.py:5:5: error[transfer.epilogue]" in run.stdout + run.stderr, run.stdout + run.stderr


def test_the_name_alone_prints_help():
    run = call()
    assert run.returncode == 2 and run.stdout == ""
    assert run.stderr == call("--help").stdout


def edited(tmp_path, old, new):
    text = PROGRAM.read_text()
    assert old in text
    path = tmp_path / "edited.tl"
    path.write_text(text.replace(old, new, 1))
    return path


# --- help, doctor, explain, diff --------------------------------------------------------------

COMMANDS = {"make": "--target", "port": "--spec", "rebase": "--onto", "capture": "--form", "lift": "--out", "transfer": "--spec",
            "check": "--cases", "lower": "--reference", "build": "--target", "prove": "folder",
            "bench": "folders", "diff": "b", "explain": "law", "doctor": "--help",
            "self-test": "--write", "serve": "--root", "eval": "--samples"}


def test_help_lists_every_command():
    run = call("--help")
    assert run.returncode == 0 and all(re.search(rf"^ +{c} ", run.stdout, re.M) for c in COMMANDS)


@pytest.mark.parametrize("command, word", COMMANDS.items())
def test_help_of_a_command_names_what_it_takes(command, word):
    run = call(command, "--help")
    assert run.returncode == 0 and word in run.stdout


@pytest.mark.parametrize("words", [["mend"], ["lift"], ["make", "x.py", "--colour"]])
def test_a_wrong_command_line_is_bad_input(words):
    run = call(*words)
    assert run.returncode == 2 and len(run.stderr.splitlines()) <= SCREEN


def test_a_misspelled_command_is_named():
    assert_refused(call("mkae", "x.py"), "cli.command", "mkae", "--help")


def test_doctor_finds_what_the_stages_need():
    run = call("doctor")
    assert run.returncode == 0, run.stdout
    for what in ["files", "python", "libclang", "NVRTC"]:
        assert re.search(rf"^ok +{what} ", run.stdout, re.M), run.stdout


def test_explain_says_a_law_and_all_laws_of_a_word():
    one = call("explain", "wgmma.C1")
    assert one.returncode == 0 and one.stdout.startswith("wgmma.C1  ")
    word = call("explain", "wgmma")
    assert word.returncode == 0 and one.stdout in word.stdout
    assert len(word.stdout.splitlines()) > 1
    laws = json.loads(call("explain", "wgmma", "--json").stdout)["laws"]
    assert [f"{law['law']}  {law['text']}" for law in laws] == word.stdout.splitlines()
    assert set(word.stdout.splitlines()) < set(call("explain", "all").stdout.splitlines())
    assert_refused(call("explain", "wgmma.C99"), "cli.law", "wgmma.C99")


def test_diff_is_silent_about_equal_programs_and_shows_one_change(tmp_path):
    same = call("diff", PROGRAM, PROGRAM)
    assert (same.returncode, same.stdout) == (0, "")
    run = call("diff", PROGRAM, edited(tmp_path, "STAGES = 2", "STAGES = 3"))
    assert run.returncode == 1
    assert "STAGES = 2" in run.stdout and "STAGES = 3" in run.stdout
    assert len(run.stdout.splitlines()) <= SCREEN
    as_json = call("diff", PROGRAM, tmp_path / "edited.tl", "--json")
    assert as_json.returncode == 1 and json.loads(as_json.stdout) == {"text": run.stdout}
    assert_refused(call("diff", PROGRAM, "none.tl"), "cli.read", "none.tl")


# --- lift, lower, build -----------------------------------------------------------------------

TARGETS = {"sm90": ["sm_90a"], "sm80": ["sm_80", "sm_90"], "sm75": ["sm_75"]}  # for which the texts are as they stand
FULL_OF_TILES = {"sm80/latent_fwd": ["sm_90"]}  # 208 KB of shared memory: only Hopper has as much
KERNELS = [k for folder in TARGETS for k in sorted(ROOT.glob(f"kernels/{folder}/*.cu"))]


def targets(kernel):
    return FULL_OF_TILES.get(f"{kernel.parent.name}/{kernel.stem}", TARGETS[kernel.parent.name])


@pytest.mark.parametrize("kernel", sorted(ROOT.glob("kernels/*/*.cu")), ids=lambda p: p.parent.name)
def test_lift_and_lower_in_a_pipe_give_the_kernel_back(kernel, tmp_path):
    lifted = call("lift", kernel)
    assert lifted.returncode == 0, lifted.stderr
    lowered = call("lower", "-", "--reference", kernel, "--patch", tmp_path / "p",
                   stdin=lifted.stdout)
    assert lowered.returncode == 0, lowered.stderr
    assert lowered.stdout == kernel.read_text() and (tmp_path / "p").read_text() == ""
    assert call("lift", "-", stdin=kernel.read_text()).stdout == lifted.stdout


def test_every_folder_of_kernels_has_its_targets():
    assert {p.name for p in ROOT.glob("kernels/*/")} == set(TARGETS)


def test_more_shared_memory_than_the_target_has_is_refused_with_its_sum(tmp_path):
    run = call("build", ROOT / "kernels/sm80/attention_fwd.cu", "--target", "sm_86", "--out", tmp_path / "k")
    assert_refused(run, "launch.shared", "attention_fwd.cu:", "ring k_s, 2 of 64 x 128: 32768 bytes",
                   "in all, as a multiple of 1024: 81920 bytes", "sm_86 has 102400")
    assert not (tmp_path / "k").exists()


@pytest.mark.parametrize("command", ["make", "transfer", "build"])
def test_an_unknown_target_is_refused_with_those_that_there_are(command, tmp_path, captured):
    words = {"make": [captured], "transfer": [PROGRAM, "--spec", captured],
             "build": [KERNEL, "--out", tmp_path / "k.cubin"]}[command]
    run = call(command, *words, "--target", "sm_70", cwd=tmp_path)
    assert_refused(run, "driver.target", "sm_70", "sm_90a, sm_80, sm_86, sm_89, sm_90, sm_75", "A100")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["transfer", "build"])
def test_a_kernel_is_refused_for_a_target_that_lacks_what_it_has(command, tmp_path, captured):
    words = {"transfer": [PROGRAM, "--spec", captured], "build": [KERNEL, "--out", tmp_path / "k.cubin"]}[command]
    run = call(command, *words, "--target", "sm_75", cwd=tmp_path)
    assert_refused(run, "target.C1", "target.C3", "use element f16", "which copy_in reads")
    assert list(tmp_path.iterdir()) == []


# --- lower without a reference ------------------------------------------------------------------

TURING = sorted(ROOT.glob("tests/sm75/*.tl"))


def resources(path, target, tmp_path):
    run = call("build", path, "--target", target, "--out", tmp_path / "k.cubin", "--json")
    assert run.returncode == 0, run.stderr
    made = json.loads(run.stdout)
    return made["registers"], made["spills"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_printed_program_takes_the_registers_that_the_experts_text_takes(kernel, tmp_path):
    program = ROOT / f"tests/corpus/{kernel.parent.name}_{kernel.stem}.tl"
    run = call("lower", program, "--out", tmp_path / "k.cu")
    assert run.returncode == 0, run.stderr
    target = targets(kernel)[0]
    assert resources(tmp_path / "k.cu", target, tmp_path) == resources(kernel, target, tmp_path)
    again = call("lift", tmp_path / "k.cu")
    assert again.stdout == program.read_text()


@pytest.mark.parametrize("program", TURING, ids=lambda p: p.stem)
@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_a_kernel_for_turing_compiles_without_spills(program, target, tmp_path):
    run = call("lower", program, "--out", tmp_path / "k.cu")
    assert run.returncode == 0, run.stderr
    assert resources(tmp_path / "k.cu", target, tmp_path)[1] == 0


def test_a_patch_needs_a_reference(tmp_path):
    run = call("lower", PROGRAM, "--patch", tmp_path / "p")
    assert run.returncode == 2 and "--reference" in run.stderr and not (tmp_path / "p").exists()


@pytest.mark.parametrize("kernel, target", [(k, t) for k in KERNELS for t in targets(k)])
def test_a_corpus_kernel_compiles_without_spills(kernel, target, tmp_path):
    run = call("build", kernel, "--target", target, "--out", tmp_path / "k.cubin", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["spills"] == 0
    assert (tmp_path / "k.cubin").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize("option, said", [
    (["--backward"], "--backward is asked for, and "),
    (["--save-for-backward"], "--save-for-backward is asked for, and "),
    (["--function", "other"], "was captured of the function attention"),
    (["--dtype", "f16"], "was captured in bf16"),
])
def test_an_option_that_a_folder_was_not_captured_with_is_refused(captured, option, said):
    run = call("check", PROGRAM, "--spec", captured, *option, "--check", "quick")
    assert run.returncode == 2 and "spec.folder" in run.stderr and said in run.stderr


def test_an_option_that_a_folder_was_captured_with_is_taken(captured):
    run = call("check", PROGRAM, "--spec", captured, "--dtype", "bf16", "--function", "attention", "--check", "quick", "--cases", "1")
    assert "spec.folder" not in run.stderr


# --- broken and wrong programs ----------------------------------------------------------------

def test_a_broken_program_is_refused_with_its_law_and_a_caret(tmp_path, captured):
    path = edited(tmp_path, "wgmma s = q_r @ k_s[t + 1].T", "wgmma s = q_r @ v_q[t + 1].T")
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "v_q" in text)
    for run in [call("check", path, "--spec", captured), call("lower", path, "--reference", KERNEL)]:
        assert run.returncode == 2 and run.stdout == ""
        assert re.search(rf"edited\.tl:{line}:\d+: error\[[a-z_]+\.[A-Z]\d+\]", run.stderr), run.stderr
        assert re.search(r"^ +\| +\^", run.stderr, re.M), run.stderr
        assert "Traceback" not in run.stderr and len(run.stderr.splitlines()) <= SCREEN


def test_a_program_that_means_something_else_is_refuted_with_one_screen(tmp_path, captured):
    path = edited(tmp_path, "l[i] = l[i] * factor[i]", "l[i] = l[i] * 1.0")
    run = call("check", path, "--spec", captured)
    assert run.returncode == 1, run.stderr
    said = run.stdout + run.stderr
    assert "refuted" in said and len(said.splitlines()) <= SCREEN, said
    as_json = call("check", path, "--spec", captured, "--json")
    facts = json.loads(as_json.stdout)
    assert as_json.returncode == 1 and facts["verdict"] == "refuted"
    assert min(facts["counterexample"]["sizes"].values()) >= 1


def test_check_json_of_a_right_program(captured):
    run = call("check", PROGRAM, "--spec", captured, "--cases", 3, "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["verdict"] == "holds"


def test_a_quick_check_says_that_it_was_one(captured):
    run = call("check", PROGRAM, "--spec", captured, "--check", "quick", "--json")
    assert run.returncode == 0, run.stderr
    facts = json.loads(run.stdout)
    assert facts["effort"] == "quick" and facts["exact"]["ran"] and facts["exact"]["cases"] == 1
    assert "schedules" not in facts
    assert facts["exact"]["error_bound"] <= 2**-50
    text = call("check", PROGRAM, "--spec", captured, "--check", "quick")
    assert text.stdout.startswith("holds for one order of the agents (quick check)") and "exact: 1 case" in text.stdout
    assert call("check", PROGRAM, "--spec", captured, "--check", "hasty").returncode == 2


# --- make: bad input --------------------------------------------------------------------------

EXPECTED = re.compile(r"# error (\S+) at line (\d+): (.*)")


@pytest.mark.parametrize("name", ["files/syntax", "operators/branch_on_value", "operators/top_k", "types/float32"])
def test_a_bad_specification_is_refused_in_the_users_file(name, tmp_path):
    spec = ROOT / f"tests/spec/bad/{name}.py"
    code, line, fact = EXPECTED.match(spec.read_text()).groups()
    assert_refused(call("make", spec, cwd=tmp_path), code, f"{spec}:{line}:", fact)
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_there_is_named(tmp_path, captured):
    refused = [
        (["none.py"], "spec.file", "none.py"),
        ([ROOT / "examples/full.py", "--function", "half"], "spec.no_function", "half"),
    ]
    for words, code, fact in refused:
        assert_refused(call("make", *words, cwd=tmp_path), code, fact)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_make_did_not_write_is_kept(tmp_path, captured):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.tex").write_text("years")
    assert_refused(call("make", captured, "--out", mine), "driver.out", "mine")
    assert_refused(call("make", captured, "--out", mine / "thesis.tex/out"), "driver.out", "thesis.tex")
    assert (mine / "thesis.tex").read_text() == "years" and len(list(tmp_path.iterdir())) == 1


# --- make: machine-readable, and killed -------------------------------------------------------

@pytest.fixture(scope="session")
def plain(captured, tmp_path_factory):
    """(folder, run) of plain attention made from its captured folder."""
    folder = tmp_path_factory.mktemp("plain") / "made"
    run = call("make", captured, "--json", "--out", f"{folder}/")
    assert run.returncode == 0, run.stderr
    return folder, run


def test_make_json_is_one_object_a_stage(plain):
    stages = [json.loads(line) for line in plain[1].stdout.splitlines()]
    assert [s["stage"] for s in stages if s["stage"]] == ["capture", "lift", "transfer", "check",
                                                          "lower", "build", "wrote"]
    assert all(s["seconds"] >= 0 and s["text"] for s in stages)


def test_findings_are_json_as_well(tmp_path):
    run = call("make", ROOT / "tests/spec/bad/files/syntax.py", "--json", cwd=tmp_path)
    [finding] = json.loads(run.stderr)["diagnostics"]
    assert run.returncode == 2 and finding["code"] == "spec.syntax"


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def stable(files):
    """Without what differs from run to run."""
    return {name: text for name, text in files.items() if name != "certificate.json"}


def killed_make(captured, target, delay, in_write):
    """Starts make, kills it after `delay`, counted from the start or from its first file."""
    process = subprocess.Popen([COMMAND, "make", captured, "--out", target],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    staging = target.parent / f".{target.name}.{process.pid}"
    while in_write and process.poll() is None and not staging.exists():
        pass  # a sleep may outlast the write
    if delay:
        time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return staging


def test_a_killed_run_leaves_no_folder_or_a_whole_one(plain, captured, tmp_path):
    whole = stable(files_of(plain[0]))
    delays = random.Random(os.urandom(4))
    seen_staging, half = False, 6 if os.environ.get("KW_TEST_ALL") == "1" else 2
    for n in range(2 * half + 20):
        if n >= 2 * half and seen_staging:  # on a busy machine the write may be over when we wake
            break
        target = tmp_path / "made"
        if n == half:  # from here on there is an older folder, recognisable
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(plain[0], target)
            (target / "old").write_text("")
        in_write = n % 2 == 1
        delay = (0 if n == 1 or n >= 2 * half else delays.uniform(0, 0.06)) if in_write else delays.uniform(0, 2.5)
        staging = killed_make(captured, target, delay, in_write)
        seen_staging = seen_staging or staging.exists()
        there = f"run {n}, killed after {delay:.3f} s"
        if n < half and not target.exists():
            continue
        files = stable(files_of(target))
        assert files.keys() - {"old"} == whole.keys(), there
        assert {k: v for k, v in files.items() if k != "old"} == whole, there
    assert seen_staging, "no kill fell into the write"


# --- inputs that are no texts -----------------------------------------------------------------


@pytest.mark.parametrize("words", [["lift", "/dev/zero"], ["check", "/dev/zero", "--spec", ROOT / "examples/causal.py"]])
def test_a_text_without_an_end_is_bad_input(words):
    assert_refused(call(*words), "cli.read", "/dev/zero", "more than 67108864 bytes", "kilobytes")


def test_a_pipe_and_standard_input_are_read_as_a_file_is(tmp_path):
    kernel = ROOT / "kernels/sm80/rms_norm.cu"
    want = call("lift", kernel).stdout
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=lambda: (tmp_path / "pipe").write_text(kernel.read_text())).start()
    assert call("lift", tmp_path / "pipe").stdout == call("lift", "-", stdin=kernel.read_text()).stdout == want != ""


def test_a_specification_that_is_no_regular_file_is_called_that():
    for device in ("/dev/zero", "/dev/null"):
        assert_refused(call("capture", device), "spec.file", f"'{device}' is not a regular file", "Python file")
    assert_refused(call("capture", "/dev/nothing"), "spec.file", "there is no file")


def test_a_definition_of_lists_in_lists_is_bad_input(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 200_000)
    assert_refused(call("capture", tmp_path / "deep.json"), "spec.definition", "deep.json:1:1", "deep", "a definition three")


@pytest.mark.parametrize("text, said", [("x = " + "1+" * 200_000 + "1", "recursion depth"), ("x = 1\0", "null bytes")])
def test_a_file_that_python_cannot_read_is_bad_input(text, said, tmp_path):
    (tmp_path / "spec.py").write_text(text)
    run = call("capture", tmp_path / "spec.py")
    assert run.returncode == 2 and "error[spec.syntax]" in run.stderr and said in run.stderr, run.stderr[:400]


@pytest.mark.parametrize("count", ["0", "-1"])
def test_no_cases_are_too_few(count, captured):
    run = call("check", PROGRAM, "--spec", captured, "--cases", count)
    assert run.returncode == 2 and "--cases" in run.stderr and count in run.stderr, run.stderr
