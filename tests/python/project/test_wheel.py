"""The wheel for everybody (scripts/wheel), installed into a clean virtual environment.

Only compiling is left out: KW_BUILT hands the wheel what the finished build of this tree installs by
its own rules (packaging/from_build.cmake). The environment gets PyTorch and what it requires as links
to those that are installed already, and nothing else."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from kernelwright_cli import ROOT

VERSION = re.search(r"kernelwright VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
PROGRAMS = ["kernelwright", "kernelwright-prove", "kernelwright-tune-time"]


def write_wheel(folder, built):
    return subprocess.run([ROOT / "scripts/wheel", "--built", built, folder], text=True, capture_output=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run = write_wheel(folder, ROOT / "build")
    assert run.returncode == 0, run.stdout + run.stderr
    return next(folder.glob("*.whl"))


def python_of(version):
    """A Python of this version: pyenv's, or that on the PATH, where may stand a name with no Python behind it."""
    for place in [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python"), shutil.which(f"python{version}")]:
        if place and subprocess.run([place, "-c", "import venv, ensurepip"], capture_output=True).returncode == 0:
            return place
    pytest.skip(f"no Python {version} with pip on this machine")


def required(names):
    """The distributions of these names and all that they require, of those installed here."""
    found, left = {}, [Requirement(name) for name in names]
    while left:
        asked = left.pop()
        distribution = importlib.metadata.distribution(asked.name)
        for extra in ["", *asked.extras]:
            if (distribution.name, extra) not in found:
                found[distribution.name, extra] = distribution
                new = map(Requirement, distribution.requires or [])
                left += [r for r in new if not r.marker or r.marker.evaluate({"extra": extra})]
    return found.values()


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment with the wheel; its folder."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python3*/site-packages"))
    for distribution in required(["torch", "numpy", "libclang", "z3-solver"]):
        for top in {file.parts[0] for file in distribution.files} - {"..", "__pycache__"}:
            link = packages / top
            if not link.is_symlink():
                link.symlink_to(distribution.locate_file(top))
    # Without --no-deps: pip itself sees whether what the wheel requires is there.
    run = subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--python",
                          str(folder / "bin/python"), "install", "--no-index", str(wheel)],
                         text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def hiding(folder):
    """Words before a command that empty the source tree for it, but for .venv, where PyTorch's files are; none
    where the system does not let us."""
    (folder / "empty").mkdir(exist_ok=True)
    trees = [p for p in ROOT.iterdir() if p.is_dir() and p.name != ".venv"]
    mounts = " && ".join(f"mount --bind {folder / 'empty'} {tree}" for tree in trees)
    words = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh"]
    return words if shutil.which("unshare") and not subprocess.run([*words, "true"]).returncode else []


def call(environment, *words, cwd):
    """A command of the environment, as someone calls it who never saw the source tree. Not isolated: PyTorch is a link
    to the clone's, which may lie in /tmp, and a capture has a /tmp of its own."""
    return subprocess.run([*hiding(cwd), str(environment / "bin" / words[0]), *map(str, words[1:])], cwd=cwd,
                          text=True, capture_output=True, timeout=300,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), "KERNELWRIGHT_ISOLATION": "none"})


def test_the_wheel_says_what_it_is_and_carries_its_licence(wheel):
    assert wheel.name == f"kernelwright-{VERSION}-py3-none-manylinux_2_34_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        info = f"kernelwright-{VERSION}.dist-info"
        metadata = archive.read(f"{info}/METADATA").decode()
        licence = archive.read(f"{info}/licenses/LICENSE").decode()
        assert not [n for n in archive.namelist() if n.endswith(".pyc") or n.startswith(("src/", "tests/"))]
    assert "License-Expression: Apache-2.0\n" in metadata
    requires = set(re.findall(r"^Requires-Dist: ([\w-]+)[^;\n]*$", metadata, re.M))
    assert requires == {"torch", "numpy", "libclang", "z3-solver"}
    assert re.search(r"^Requires-Dist: mcp.*; extra == ['\"]serve['\"]$", metadata, re.M), metadata
    assert "TERMS AND CONDITIONS" in licence and "END OF TERMS AND CONDITIONS" in licence


def test_a_system_older_than_the_tag_is_refused(wheel):
    """The tag is no wish: auditwheel finds a symbol that the system before it lacks."""
    run = subprocess.run([sys.executable, "-m", "auditwheel", "repair", "--plat", "manylinux_2_31_x86_64", str(wheel)],
                         text=True, capture_output=True, env={**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}"})
    assert run.returncode != 0 and "too-recent versioned symbols" in run.stdout + run.stderr, run.stdout + run.stderr


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_every_python_that_it_is_for_takes_it(wheel, version, tmp_path):
    """Into a folder of its own, without PyTorch: the programs start, the package is found."""
    venv = tmp_path / "venv"
    subprocess.run([python_of(version), "-m", "venv", str(venv)], check=True)
    python = venv / "bin/python"
    run = subprocess.run([python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-deps", str(wheel)],
                         text=True, capture_output=True)
    assert run.returncode == 0, run.stdout + run.stderr
    run = subprocess.run([venv / "bin/kernelwright", "--version"], text=True, capture_output=True, cwd=tmp_path)
    assert run.stdout == f"kernelwright {VERSION}\n", run.stderr
    run = subprocess.run([python, "-c", "import kernelwright; print(kernelwright.__file__)"], text=True, capture_output=True,
                         cwd=tmp_path)
    assert str(venv) in run.stdout, run.stderr


def test_the_programs_and_the_library_need_nothing_but_glibc_and_libgcc(environment):
    package = next(environment.glob("lib/python3*/site-packages/kernelwright"))
    files = [*(package / "bin").iterdir(), package / "lib/libkernelwright_launch.so"]
    assert len(files) == len(PROGRAMS) + 1
    for file in files:
        needed = subprocess.run(["readelf", "-d", file], text=True, capture_output=True, check=True).stdout
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", needed))
        assert needed and needed <= {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libgcc_s.so.1"}, (file, needed)


def test_the_programs_are_on_the_path_and_say_their_version(environment, tmp_path):
    assert all(call(environment, p, "--help", cwd=tmp_path).returncode == 0 for p in PROGRAMS)
    assert call(environment, "kernelwright", "--version", cwd=tmp_path).stdout == f"kernelwright {VERSION}\n"


def test_the_doctor_finds_everything_inside_the_environment(environment, tmp_path):
    run = call(environment, "kernelwright", "doctor", cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(rf"^ok +files +{environment}/lib/\S+/share/kernelwright$", run.stdout, re.M), run.stdout
    assert str(ROOT) not in run.stdout, run.stdout


def test_a_kernel_is_made_from_another_folder(environment, tmp_path):
    shutil.copy(ROOT / "examples/causal.py", tmp_path)
    run = call(environment, "kernelwright", "make", "causal.py", "--check", "quick", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    made = tmp_path / "out/causal"
    assert json.loads((made / "certificate.json").read_text())["verdict"] == "holds"
    assert (made / "kernel.cubin").read_bytes()[:4] == b"\x7fELF"


def test_the_launch_library_opens_from_python(environment, tmp_path):
    script = "from kernelwright.runtime.library import library; print(library()._name)"
    run = call(environment, "python", "-c", script, cwd=tmp_path)
    assert run.stdout.strip().endswith("site-packages/kernelwright/lib/libkernelwright_launch.so"), run.stderr


def test_cmake_finds_the_package_inside_the_environment(environment, tmp_path):
    package = next(environment.glob("lib/python3*/site-packages/kernelwright"))
    (tmp_path / "user.cpp").write_text("#include <kernelwright/launch_c.h>\nint main() { return *kw_last_error(); }\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\nfind_package(kernelwright REQUIRED)\n"
        "add_executable(user user.cpp)\ntarget_link_libraries(user PRIVATE kernelwright::launch)\n"
        "file(WRITE ${CMAKE_BINARY_DIR}/program ${kernelwright_PROGRAM})\n")
    build = tmp_path / "build"
    for words in [["-S", tmp_path, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={package}"], ["--build", build]]:
        run = subprocess.run(["cmake", *words], text=True, capture_output=True)
        assert run.returncode == 0, run.stdout + run.stderr
    assert subprocess.run([build / "user"]).returncode == 0
    assert (build / "program").read_text() == str(package / "bin/kernelwright")


def test_a_command_without_its_program_says_so(tmp_path):
    package = shutil.copytree(ROOT / "python/kernelwright", tmp_path / "lib/python/kernelwright")
    run = subprocess.run([sys.executable, "-c", "from kernelwright.commands import main; main()"], text=True,
                         capture_output=True, cwd=package.parent)
    assert run.returncode == 2 and run.stderr.startswith("error[driver.program]: kernelwright is in none of: ")
    assert "Traceback" not in run.stderr


def test_a_folder_that_is_no_build_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    run = write_wheel(tmp_path, tmp_path / "empty")
    assert run.returncode != 0
    assert "has no cmake_install.cmake" in re.sub(r"\s+", " ", run.stdout + run.stderr)
