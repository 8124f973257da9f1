"""The commands on the PATH: the programs that come with this package, found and run.

A wheel has them in kernelwright/bin/, a checkout in build/. They are C++ and look for a Python with
PyTorch, for libclang, for Z3 and for NVRTC themselves, along the folders of a virtual environment; whoever
starts them from Python knows better, by sys.path, which also tells of user sites and .pth files. So
`environment` says it to them in the variables that a user may set, and leaves those that are set.

`main`, `prove` and `tune_time` are the commands on the PATH. They become the program (exec): signals,
streams and exit codes are its own.
"""

import os
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


class ProgramError(RuntimeError):
    """A program of ours is not where it should be."""


def path(name="kernelwright"):
    """The program `name`: in the wheel, or in the build folder of a checkout. Raises ProgramError."""
    places = [PACKAGE / "bin" / name, PACKAGE.parents[1] / "build" / name]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise ProgramError(f"{name} is in none of: " + ", ".join(map(str, places)))


def home(program):
    """The folder of the vocabulary and the kernels, or None; src/driver/environment/home.h says where it is."""
    named = os.environ.get("KERNELWRIGHT_HOME")
    above = [p / sub for p in Path(program).resolve().parents for sub in ("", "share/kernelwright")]
    for place in [*([Path(named)] if named else []), *above]:
        if (place / "cuda/kw/kw.cuh").exists():
            return place
    return None


def environment():
    """os.environ, with where this Python, its libclang, its Z3 and its NVRTC are."""
    found = {"KERNELWRIGHT_PYTHON": sys.executable,
             "KERNELWRIGHT_LIBCLANG": _on_sys_path("clang/native/libclang.so"),
             "KERNELWRIGHT_Z3": _on_sys_path("z3/lib/libz3.so"),
             "KERNELWRIGHT_NVRTC": _on_sys_path("nvidia/cu13/lib/libnvrtc.so.*",
                                                "nvidia/cuda_nvrtc/lib/libnvrtc.so.*")}
    return {**{name: value for name, value in found.items() if value}, **os.environ}


def _on_sys_path(*patterns):
    """The first file that a folder of sys.path has by one of these patterns; None."""
    for folder in map(Path, sys.path):
        for pattern in patterns:
            for file in sorted(folder.glob(pattern)):
                return str(file)
    return None


def _become(name):
    try:
        program = str(path(name))
    except ProgramError as error:
        print(f"error[driver.program]: {error}\n  help: install kernelwright again, or build it in its "
              "checkout", file=sys.stderr)
        sys.exit(2)
    os.execve(program, [program, *sys.argv[1:]], environment())


def main():
    _become("kernelwright")


def prove():
    _become("kernelwright-prove")


def tune_time():
    _become("kernelwright-tune-time")
