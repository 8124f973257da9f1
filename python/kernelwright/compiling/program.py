"""The program `kernelwright`, which makes kernels: where it is, which one it is, and what it says.

It is looked for in KERNELWRIGHT_PROGRAM, in bin/ beside this package, in the build folder of a
checkout, beside the Python that runs, and on the PATH. A cache entry names what made it by an
identity: the hash of the program, of the vocabulary and the kernels that it reads, of what captures in
this package, and of PyTorch's and NVRTC's versions. Hashing 50 MB takes longer than all the rest of a warm start,
so the hash is kept under the files' sizes and times.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import torch

from .. import commands
from ..errors import Inconclusive, InternalError, MachineError, Refuted, SpecError
from .cache import digest

_PACKAGE = commands.PACKAGE
_ROOMS = ("", "capture", "compiling", "runtime")
# Modules that only launch what lies in the cache: a new text of theirs needs no new capture.
_LAUNCHING = {"__init__", "bindings", "cache", "class_parts", "compiler", "dependencies", "errors", "huggingface", "launch",
              "library", "operators", "origin", "places", "program", "query_rows", "recompute", "rounded_rows", "skip_dispatcher", "training"}
# Codes of diagnostics that say something of the machine and nothing of the function.
_OF_THE_MACHINE = ("build.no_nvrtc", "build.nvrtc", "driver.", "launch.target")


def find():
    """The program's path, or None."""
    named = os.environ.get("KERNELWRIGHT_PROGRAM")
    if named:
        if not os.access(named, os.X_OK):
            raise MachineError(f"KERNELWRIGHT_PROGRAM is {named}, which is not a program")
        return pathlib.Path(named)
    places = [_PACKAGE / "bin/kernelwright", _PACKAGE.parents[1] / "build/kernelwright",
              pathlib.Path(sys.executable).parent / "kernelwright"]
    on_path = shutil.which("kernelwright")
    return next((p for p in [*places, *([pathlib.Path(on_path)] if on_path else [])] if _is_program(p)), None)


def _is_program(path):
    """An executable, and no Python script of the same name that would start us again."""
    return os.access(path, os.X_OK) and path.is_file() and path.open("rb").read(4) == b"\x7fELF"


def _modules():
    """The files of this package, but for those of `kernelwright serve`."""
    return [p for room in _ROOMS for p in (_PACKAGE / room).glob("*.py")]


def _files(program):
    home = commands.home(program)
    folders = [home / "cuda/kw", home / "kernels"] if home else []
    files = [program, *(p for p in _modules() if p.stem not in _LAUNCHING),
             *(p for folder in folders for p in folder.rglob("*") if p.is_file())]
    tiles = os.environ.get("KERNELWRIGHT_TILES")  # a tile database of the user's
    return sorted({*files, *([pathlib.Path(tiles)] if tiles and os.path.exists(tiles) else [])})


def identity(cache):
    """Sixteen hexadecimal digits; None where there is no program."""
    program = find()
    if program is None:
        return None
    files = _files(program)
    seen = [(str(p), s.st_size, s.st_mtime_ns, s.st_ino) for p in files for s in (p.stat(),)]
    nvrtc = sorted((p.name, p.stat().st_size) for p in
                   pathlib.Path(torch.__file__).parents[1].glob("nvidia/*/lib/libnvrtc.so*"))
    versions = [torch.__version__, nvrtc, os.environ.get("KERNELWRIGHT_NVRTC", "")]
    key = digest(seen, versions)
    record = cache.read("programs", key)
    if record is None:
        hashes = [hashlib.sha256(p.read_bytes()).hexdigest() for p in files]
        record = {"identity": digest([p.name for p in files], hashes, versions)[:16]}
        cache.write("programs", key, record)
    return record["identity"]


def make(captured, out, target, check, say, deterministic=False):
    """Runs `kernelwright make` on a folder that capture wrote. `say` gets each line of progress."""
    program = find()
    if program is None:
        raise MachineError("the program kernelwright is not on this machine, and this function is not "
                           "in the cache\n  help: install it, or name it in KERNELWRIGHT_PROGRAM")
    command = [program, "make", captured, "--out", out, "--target", target, "--check", check, "--json",
               *(["--deterministic"] if deterministic else [])]
    environment = {**os.environ, "KERNELWRIGHT_PYTHON": sys.executable}
    with tempfile.TemporaryFile("w+") as complaints:
        run = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE,
                               stderr=complaints, text=True, env=environment)
        for line in run.stdout:
            stage = json.loads(line)
            seconds = f"  [{stage['seconds']:.1f} s]" if stage["seconds"] > 0 else ""
            say(f"{stage['stage']:<9} {stage['text']}{seconds}")
        if run.wait() != 0:
            complaints.seek(0)
            raise _failure(run.returncode, complaints.read())


def _failure(code, said):
    text, diagnostics = _diagnostics(said)
    first = diagnostics[0] if diagnostics else None
    message = "\n".join(d["message"] for d in diagnostics) or text.strip()
    if first and first["code"].startswith(_OF_THE_MACHINE):
        return MachineError(message + (f"\n  help: {first['hint']}" if first.get("hint") else ""))
    if code == 1:
        return Refuted(text.strip() or message)
    if code == 3:
        return Inconclusive(text.strip() or message)
    if code == 2 and first:
        place = first.get("place") or {}
        return SpecError(message, place.get("file"), place.get("line"), place.get("column"),
                         first["code"], first.get("hint"))
    return InternalError(f"kernelwright make ended with {code}: {message}")


def _diagnostics(said):
    """What the program wrote: text, and after it one JSON object with diagnostics, if any."""
    at = said.find('{\n "diagnostics"')
    if at < 0:
        return said, []
    try:
        return said[:at], json.loads(said[at:])["diagnostics"]
    except ValueError:
        return said, []
