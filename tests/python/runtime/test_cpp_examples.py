"""examples/cpp against an installation: find_package, both programs, and the header read as C.

The kernel is the corpus's own, which is attention without a mask, and the stand-in driver of
tests/fake_cuda computes it; so the programs run to their end where there is no GPU."""

import os
import re
import subprocess

import pytest

from kernelwright_cli import ROOT
from tiny_cubin import tiny_cubin

CUDA = next((ROOT / ".venv").glob("lib/*/site-packages/nvidia/cu13/include"))
FAKE = ROOT / "build/tests/fake_cuda"
PROGRAMS = ["with_launch_h", "with_c_abi"]


def run(*words, **environment):
    return subprocess.run(list(map(str, words)), text=True, capture_output=True,
                          env={**os.environ, **environment})


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """An installation under another name than it was installed with."""
    first = tmp_path_factory.mktemp("installed") / "first"
    done = run("cmake", "--install", ROOT / "build", "--component", "kernelwright", "--prefix", first)
    assert done.returncode == 0, done.stderr
    return first.rename(first.with_name("moved"))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """out/full as far as launching goes: what make writes of the corpus's kernel unchanged."""
    folder = tmp_path_factory.mktemp("out") / "full"
    folder.mkdir()
    done = run(ROOT / "build/tests/launch_plan", ROOT / "tests/corpus/sm90_attention_fwd.tl", "sm_90a", folder, "full")
    assert done.returncode == 0, done.stderr
    size = int(re.search(r"parameters\[(\d+)\]", (folder / "launch.h").read_text())[1])
    (folder / "kernel.cubin").write_bytes(tiny_cubin("attention_fwd", size))
    return folder


def configure(source, build, prefix, *more):
    return run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", *more)


@pytest.fixture(scope="module")
def programs(prefix, kernel, tmp_path_factory):
    build = tmp_path_factory.mktemp("build")
    done = configure(ROOT / "examples/cpp", build, prefix, f"-DKERNEL={kernel}", f"-DCUDA_INCLUDE={CUDA}",
                     f"-DCUDA_DRIVER={FAKE / 'libcuda.so.1'}", "-DCMAKE_CXX_FLAGS=-O1 -Wall -Wextra -Werror")
    assert done.returncode == 0, done.stdout + done.stderr
    done = run("cmake", "--build", build)
    assert done.returncode == 0, done.stdout + done.stderr
    return build


def launch(programs, name, kernel, **environment):
    return run(programs / name, kernel, LD_LIBRARY_PATH=str(FAKE), **environment)


def test_both_programs_launch_the_kernel_and_agree_with_the_cpu(programs, kernel):
    said = [launch(programs, name, kernel, FAKE_CUDA_ATTENTION="1") for name in PROGRAMS]
    assert [s.returncode for s in said] == [0, 0], said
    assert "24 rows agree with the CPU's" in said[0].stdout and said[0].stdout == said[1].stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_kernel_that_computes_nothing_is_noticed(programs, kernel, name):
    said = launch(programs, name, kernel)
    assert said.returncode == 1 and "24 rows are NOT the CPU's" in said.stdout


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_gpu_the_programs_say_so(programs, kernel, name):
    said = launch(programs, name, kernel, FAKE_CUDA_NO_GPU="1")
    assert said.returncode == 2 and said.stderr.startswith("there is no GPU to run on: CUDA_ERROR")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_folder_without_a_kernel_is_refused(programs, tmp_path, name):
    said = launch(programs, name, tmp_path)
    assert said.returncode == 2 and str(tmp_path) in said.stderr


def test_the_kernels_folder_is_asked_for_by_name(prefix, tmp_path):
    done = configure(ROOT / "examples/cpp", tmp_path, prefix, "-DKERNEL=/nowhere")
    assert done.returncode != 0 and "KERNEL is '/nowhere', where no launch.h is" in done.stderr


def test_another_minor_version_is_not_found(prefix, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
                                             "find_package(kernelwright 0.2 REQUIRED)\n")
    done = configure(tmp_path, tmp_path / "build", prefix)
    assert done.returncode != 0 and "0.1.0" in done.stderr


FORGETFUL = """#include <kernelwright/launch_c.h>
#include <stdio.h>

static int last(int status) { return printf("%d %s", status, kw_last_error()); }

int main(int count, char** argument) {
  kw_kernel* kernel = NULL;
  kw_plan* plan = NULL;
  kw_tensor tensor = {"q", "bf16", 0, 4, NULL, NULL}, nameless = {NULL, "bf16", 0, 0, NULL, NULL};
  kw_scalar scalar = {NULL, 1.0};
  last(kw_kernel_load(NULL, 0, &kernel));
  last(kw_kernel_plan(NULL, &tensor, 1, NULL, 0, &plan));
  last(kw_plan_enqueue(NULL, NULL, 0, NULL));
  last(count == 2 ? kw_kernel_load(argument[1], 0, &kernel) : 9);
  printf("\\n");
  last(kw_kernel_plan(kernel, &tensor, 1, NULL, 0, &plan));
  last(kw_kernel_plan(kernel, &nameless, 1, NULL, 0, &plan));
  last(kw_kernel_plan(kernel, NULL, 0, &scalar, 1, &plan));
  kw_plan_free(plan);
  kw_kernel_free(kernel);
  return 0;
}
"""


def test_the_header_is_plain_c_and_what_a_caller_forgot_is_said(prefix, kernel, tmp_path):
    (tmp_path / "user.c").write_text(FORGETFUL)
    library = prefix / "lib/libkernelwright_launch.so"
    done = run("gcc", "-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{prefix / 'include'}",
               tmp_path / "user.c", library, "-o", tmp_path / "user")
    assert done.returncode == 0, done.stderr
    said = run(tmp_path / "user", kernel, LD_LIBRARY_PATH=f"{library.parent}:{FAKE}")
    assert said.returncode == 0 and said.stdout.splitlines() == [
        "1 error[launch.missing]: the folder is NULL",
        "1 error[launch.missing]: the kernel is NULL",
        "1 error[launch.missing]: the plan is NULL",
        "0 ",
        "1 error[launch.shape]: q: rank is 4, and shape or strides is NULL",
        "1 error[launch.missing]: a tensor's name is NULL",
        "1 error[launch.missing]: a scalar's name is NULL"], said.stdout + said.stderr
