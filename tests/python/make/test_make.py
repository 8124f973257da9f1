"""What `kernelwright make` leaves in out/NAME, held against everybody who will read it: git, nvcc's
NVRTC, a C++ compiler, and the runtime. conftest.py makes it, once a session."""

import hashlib
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

from agreement import CUDA, agreement_of, assert_agree, namespace
from kernelwright_cli import KERNEL, ROOT, call


def test_every_file_is_there(made):
    files = {"kernel.cu", "kernel.tl", "kernel.patch", "kernel.cubin", "launch.h", "launch.json",
             "prove.json", "certificate.json", "report.html", "kw", "prove", "from"}
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
    files = {str(p.relative_to(made.folder)): hashlib.sha256(p.read_bytes()).hexdigest()
             for p in made.folder.rglob("*") if p.is_file() and p.name != "certificate.json"}
    assert certificate["files"] == files
    assert certificate["expert"]["sha256"] == files["from/expert.cu"]
    assert files["from/expert.cu"] == hashlib.sha256(KERNEL.read_bytes()).hexdigest()
    spec = certificate["spec"]["file"]
    assert spec["sha256"] == hashlib.sha256(open(spec["name"], "rb").read()).hexdigest()
    assert spec["sha256"] == files["from/" + os.path.basename(spec["name"])]
    assert certificate["tools"]["torch"].startswith("2.") and certificate["effort"] == "default"


def test_the_certificate_says_what_was_checked_and_what_was_not(made):
    certificate = made.json("certificate.json")
    window = certificate["spec"]["name"] == "attention"  # 96 rows: what a second whole block does no case runs
    assert certificate["verdict"] == "holds"
    assert certificate["holds_for"] == ("the sizes and data that ran" if window else "every launch")
    assert ("holds for the sizes and data that ran (no case runs `mma" in made.run.stderr) == window
    checked = {c["check"]: c["coverage"] for c in certificate["checked"] if c["holds"]}
    assert set(checked) - {"indices"} == {"laws", "values", "key_blocks", "exact", "schedules", "lens", "cubin"}
    indices = next(c["coverage"] for c in certificate["checked"] if c["check"] == "indices")
    assert indices["proved"] and (bool(indices["open"]) != ("indices" in checked))
    values, exact, schedules = checked["values"], checked["exact"], checked["schedules"]
    assert len(values["cases"]) >= 8 and all("seed" in c for c in values["cases"])
    assert values["worst_error_over_allowed"] <= 1
    assert len(exact["cases"]) >= 3 and exact["opaque_operations"] == []
    assert 0 < exact["difference_missed_with_probability_below"] <= 2**-100
    assert schedules["all_sequences_of_blocks"] and schedules["any_number_of_key_blocks"]
    assert checked["cubin"]["spill_bytes"] == 0
    assert any("fingerprint" in line for line in certificate["not_checked"])
    assert any("on a GPU" in line for line in certificate["not_checked"])


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
    assert ["==", "M", 96] in requires and [">", "heat", 1e-12] in requires
    conditions = makes("numbers").json("certificate.json")["transfer"]["conditions"]
    assert "M == 96" in [c["holds"] for c in conditions]


def test_comments_that_a_change_may_have_made_stale_are_shown(makes):
    said = makes("numbers").run.stderr
    line = next(n for n, text in enumerate(KERNEL.read_text().splitlines(), 1) if "float scale" in text)
    assert re.search(rf"attention_fwd.cu:{line}:.*lower.stale_comment", said), said


def test_what_a_gpu_said_becomes_part_of_the_folder(tmp_path):
    """The stand-in driver computes nothing, so on it every kernel is wrong."""
    folder = tmp_path / "made"
    run = call("make", ROOT / "examples/full.py", "--check", "quick", "--gpu", "--out", folder,
               LD_LIBRARY_PATH=str(ROOT / "build/tests/fake_cuda"))
    assert run.returncode == 1, run.stderr
    certificate = json.loads((folder / "certificate.json").read_text())
    assert certificate["verdict"] == certificate["gpu"]["verdict"] == "refuted"
    assert json.loads((folder / "gpu.json").read_text())["machine"] == certificate["gpu"]["machine"]
    page = (folder / "report.html").read_text()
    assert "Wrong on Fake GPU" in page and "Do not use this kernel." in page and "not run on a GPU" not in page.lower()
