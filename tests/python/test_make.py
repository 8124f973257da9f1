"""What `kernelwright make` leaves in out/NAME, held against everybody who will read it: git, nvcc's
NVRTC, a C++ compiler, and the runtime. One `make` costs seconds, so a session shares the results.

Two examples are made: prefix-LM, and another that changes from day to day; all when KW_TEST_ALL=1.
A third specification has numbers as arguments and sizes that its code fixes."""

import datetime
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

from agreement import CUDA, agreement_of, assert_agree, namespace
from kernelwright_cli import KERNEL, ROOT, call, write_spec

OTHERS = ["full", "causal", "alibi"]
TODAY = OTHERS[datetime.date.today().timetuple().tm_yday % len(OTHERS)]
EXAMPLES = ["prefix_lm", *(OTHERS if os.environ.get("KW_TEST_ALL") == "1" else [TODAY])]
NUMBERS = """i = torch.arange(96)[:, None]
    j = torch.arange(k.shape[2])[None]
    s = ((q @ k.mT) * heat).masked_fill((j > i) | (j <= i - window), -torch.inf)
    return s.softmax(-1) @ v"""


class Made:
    def __init__(self, folder, run):
        self.folder, self.run = folder, run

    def json(self, name):
        return json.loads((self.folder / name).read_text())


@pytest.fixture(scope="session")
def makes(tmp_path_factory):
    """Each specification once a session; which of the examples is part of a failure's output."""
    print(f"examples of this run: {', '.join(EXAMPLES)}")
    done = {}

    def make(name):
        if name not in done:
            top = tmp_path_factory.mktemp(name)
            spec = ROOT / f"examples/{name}.py"
            if name == "numbers":
                spec = write_spec(top, NUMBERS, ", window, heat", ", 32, 0.125")
            done[name] = Made(top / "made", call("make", spec, "--out", top / "made"))
        return done[name]

    return make


@pytest.fixture(scope="session", params=[*EXAMPLES, "numbers"])
def made(request, makes):
    result = makes(request.param)
    assert result.run.returncode == 0, result.run.stderr
    return result


def test_every_file_is_there(made):
    files = {"kernel.cu", "kernel.tl", "kernel.patch", "kernel.cubin", "launch.h", "launch.json",
             "prove.json", "certificate.json", "kw", "prove"}
    assert {p.name for p in made.folder.iterdir()} == files
    assert not list(made.folder.parent.glob(".*"))


def test_every_stage_says_one_line_with_its_time(made):
    for stage in ["capture", "lift", "transfer", "check", "lower", "build", "wrote"]:
        assert re.search(rf"^{stage} +\S.*\[\d+\.\d s\]$", made.run.stderr, re.M), made.run.stderr
    assert len(made.run.stderr.splitlines()) <= 25


def test_the_patch_applies_to_the_experts_file(made, tmp_path):
    copy = tmp_path / "kernels/sm90/attention_fwd.cu"
    copy.parent.mkdir(parents=True)
    shutil.copy(KERNEL, copy)
    patch = made.folder / "kernel.patch"
    if patch.stat().st_size:  # plain attention changes nothing
        subprocess.run(["git", "apply", str(patch)], cwd=tmp_path, check=True,
                       env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)})
    assert copy.read_bytes() == (made.folder / "kernel.cu").read_bytes()


def test_the_certificate_names_what_it_is_about(made):
    certificate = made.json("certificate.json")
    for key, name in [("kernel", "kernel.cu"), ("program", "kernel.tl"), ("cubin", "kernel.cubin")]:
        text = (made.folder / name).read_bytes()
        assert certificate[key] == {"name": name, "sha256": hashlib.sha256(text).hexdigest()}
    assert certificate["expert"]["sha256"] == hashlib.sha256(KERNEL.read_bytes()).hexdigest()
    spec = certificate["spec"]["file"]
    assert spec["sha256"] == hashlib.sha256(open(spec["name"], "rb").read()).hexdigest()
    assert certificate["verdict"] == "holds" and certificate["resources"]["spill_bytes"] == 0
    values = certificate["checked"][0]
    assert values["holds"] and values["cases"] >= 8 and values["worst_error_over_allowed"] <= 1
    exact = next(c for c in certificate["checked"] if c["what"].startswith("exact"))
    assert exact["holds"] and exact["cases"] >= 3 and exact["opaque"] == ""
    assert 0 < exact["difference_missed_with_probability_below"] <= 2**-100
    assert certificate["effort"] == "default"
    schedules = next(c for c in certificate["checked"] if c["what"].startswith("schedules"))
    assert schedules["holds"] and schedules["all_sequences_of_blocks"]
    assert any("fingerprint" in line for line in certificate["not_checked"])
    assert any("no GPU" in line for line in certificate["not_checked"])


def code_of(cubin, entry):
    """The instructions. (The rest has line tables, which name the folder of the compilation.)"""
    elf = cubin.read_bytes()
    start, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQ", elf, start + n * size) for n in range(count)]
    for name, _, _, _, offset, length in sections:
        at = sections[names][4] + name
        if elf[at:elf.index(b"\0", at)] == f".text.{entry}".encode():
            return elf[offset:offset + length]
    raise AssertionError(f"{cubin} has no code of {entry}")


def test_the_kernel_compiles_from_its_folder_alone(made, tmp_path):
    """The folder is the home: kernel.cu sees its own kw/, not the repository's."""
    home = tmp_path / "home"
    (home / "cuda").mkdir(parents=True)
    shutil.copytree(made.folder / "kw", home / "cuda/kw")
    run = call("build", made.folder / "kernel.cu", "--out", tmp_path / "k.cubin", "--json",
               KERNELWRIGHT_HOME=str(home), KERNELWRIGHT_PYTHON=str(ROOT / ".venv/bin/python"))
    assert run.returncode == 0, run.stderr
    facts = json.loads(run.stdout)
    assert facts["spills"] == 0 and 0 < facts["registers"] <= 168
    rebuilt, first = tmp_path / "k.cubin", made.folder / "kernel.cubin"
    assert code_of(rebuilt, "attention_fwd") == code_of(first, "attention_fwd")


USER = """#include "launch.h"
int main() {
  %(name)s::Inputs in{};
  %(name)s::Plan plan;
  return %(name)s::make_plan(in, 132, plan) ? 0 : 1;
}
"""


def test_launch_h_is_all_that_a_users_program_includes(made, tmp_path):
    (tmp_path / "user.cpp").write_text(USER % {"name": namespace(made.folder)})
    subprocess.run(["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                    f"-I{made.folder}", f"-isystem{CUDA}", str(tmp_path / "user.cpp")], check=True)


# --- launch.h and the runtime, given the same tensors -----------------------------------------

@pytest.fixture(scope="session")
def agreement(made, tmp_path_factory):
    return agreement_of(made.folder, tmp_path_factory.mktemp("agree"))


def test_launch_h_packs_and_refuses_as_the_runtime_does(agreement):
    assert_agree(agreement)
    assert agreement["q lies 8 bytes off"][1:3] == (
        "q: the address must be a multiple of 16 bytes", "launch.alignment")


# --- what a launch requires, and what make says ----------------------------------------------

def test_what_the_users_code_fixes_is_required_at_launch(makes):
    requires = makes("numbers").json("launch.json")["requires"]
    assert ["==", "M", 96] in requires and [">", "heat", 0.0] in requires
    conditions = makes("numbers").json("certificate.json")["transfer"]["conditions"]
    assert "M == 96" in [c["holds"] for c in conditions]


def test_comments_that_a_change_may_have_made_stale_are_shown(makes):
    said = makes("numbers").run.stderr
    line = next(n for n, text in enumerate(KERNEL.read_text().splitlines(), 1) if "float scale" in text)
    assert re.search(rf"attention_fwd.cu:{line}:.*lower.stale_comment", said), said
