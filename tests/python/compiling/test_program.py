"""What the program says becomes the right exception. A script stands in for the program."""

import json
import os
import types

import pytest

from kernelwright import errors
from kernelwright.compiling import cache_miss, program
from kernelwright.compiling.cache import Cache

STAGE = {"stage": "lift", "text": "179 statements", "seconds": 0.25}


def diagnostic(code, message="a fact disagrees", **more):
    return {"code": code, "message": message, "hint": "", "notes": [], "place": None, **more}


@pytest.fixture
def fails(tmp_path, monkeypatch):
    def run(code, text="", *diagnostics):
        complaint = text + (json.dumps({"diagnostics": list(diagnostics)}, indent=1) if diagnostics else "")
        (tmp_path / "complaint").write_text(complaint)
        script = tmp_path / "program"
        script.write_text(f"#!/bin/sh\necho '{json.dumps(STAGE)}'\ncat {tmp_path}/complaint >&2\nexit {code}\n")
        script.chmod(0o755)
        monkeypatch.setenv("KERNELWRIGHT_PROGRAM", str(script))
        said = []
        program.make("captured", "out", "sm_90a", "quick", said.append)
        return said
    return run


def test_progress_is_passed_on_as_the_program_says_it(fails):
    assert fails(0) == ["lift      179 statements  [0.2 s]"]


@pytest.mark.parametrize("code, text, diagnostics, kind, words", [
    (1, "refuted: o[0, 1, 2] is 3, not 4\n", [], errors.Refuted, "is 3, not 4"),
    (3, "inconclusive: the mask is opaque\n", [], errors.Inconclusive, "the mask is opaque"),
    (2, "", [diagnostic("build.no_nvrtc", "no NVRTC in any of: a, b")], errors.MachineError, "no NVRTC"),
    (2, "", [diagnostic("driver.target", "no expert kernel for target 'sm_30'")], errors.MachineError, "sm_30"),
    (70, "", [diagnostic("internal.form")], errors.InternalError, "ended with 70: a fact disagrees"),
    (139, "", [], errors.InternalError, "ended with 139"),
])
def test_each_end_of_the_program_is_an_exception_of_its_own(fails, code, text, diagnostics, kind, words):
    with pytest.raises(kind, match=words):
        fails(code, text, *diagnostics)


@pytest.mark.parametrize("code, kind, verdict", [(1, errors.Refuted, "refuted"), (3, errors.Inconclusive, "inconclusive")])
def test_a_refusal_names_the_page_that_the_program_left(code, kind, verdict, tmp_path, monkeypatch):
    """compile() up to `kernelwright make`, in the place of which a script leaves its page and ends so."""
    script = tmp_path / "program"
    script.write_text(f"""#!/bin/sh
while [ "$1" != --out ]; do shift; done
mkdir "$2.{verdict}" && echo shown > "$2.{verdict}/report.html" && echo 'row 3 differs' >&2
exit {code}
""")
    script.chmod(0o755)
    monkeypatch.setenv("KERNELWRIGHT_PROGRAM", str(script))
    monkeypatch.setenv("KERNELWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache_miss, "_capture", lambda *_: (types.SimpleNamespace(
        graph={}, index={}, outside=[], traced=types.SimpleNamespace(product=False)), []))
    monkeypatch.setattr(cache_miss.capture, "write", lambda captured, folder: folder.mkdir())
    cache = Cache()
    with pytest.raises(kind, match="row 3 differs") as caught:
        cache_miss.make(cache, "key", test_a_program_that_is_none_is_named, (), (), "sm_90a", "quick")
    assert caught.value.report.read_text() == "shown\n"
    assert cache.root / "refused" in caught.value.report.parents


def test_the_users_mistake_has_the_users_place(fails):
    place = {"file": "model.py", "line": 7, "column": 3}
    with pytest.raises(errors.SpecError, match="^model.py:7:3: a fact disagrees\n  help: do this$") as caught:
        fails(2, "", diagnostic("spec.scan", place=place, hint="do this"))
    assert (caught.value.line, caught.value.code, caught.value.hint) == (7, "spec.scan", "do this")


def test_a_program_that_is_none_is_named(monkeypatch):
    monkeypatch.setenv("KERNELWRIGHT_PROGRAM", "/nowhere/kernelwright")
    with pytest.raises(errors.MachineError, match="/nowhere/kernelwright, which is not a program"):
        program.find()


def test_without_a_program_a_function_that_is_not_in_the_cache_is_refused(monkeypatch):
    monkeypatch.setattr(program, "find", lambda: None)
    with pytest.raises(errors.MachineError, match="not on this machine"):
        program.make("captured", "out", "sm_90a", "quick", print)


def test_another_program_is_another_identity(tmp_path, monkeypatch):
    cache, script = Cache(tmp_path / "cache"), tmp_path / "program"
    monkeypatch.setenv("KERNELWRIGHT_PROGRAM", str(script))

    def identity(text):
        script.write_text(text)
        script.chmod(0o755)
        return program.identity(cache)

    first = identity("#!/bin/sh\n")
    assert first == identity("#!/bin/sh\n") != identity("#!/bin/sh\nexit 1\n")
    os.utime(script, (1, 1))  # another time, the same text
    assert program.identity(cache) == identity("#!/bin/sh\nexit 1\n")


def test_an_unknown_option_names_those_that_there_are():
    import kernelwright
    for option in ({"check": "none"}, {"proposer": "model"}, {"backward": "kernel"}):
        with pytest.raises(errors.ArgumentError, match="it should be one of"):
            kernelwright.compile(lambda q: q, (), target="sm_90a", **option)


def test_what_is_no_function_is_refused_by_its_type():
    import torch

    import kernelwright
    with pytest.raises(errors.ArgumentError, match="function is of the type Tensor; it should be a function or a module"):
        kernelwright.compile(torch.zeros(2, 2), (), target="sm_90a")


def test_what_only_launches_is_a_module_of_this_package():
    assert {p.stem for p in program._modules()} >= program._LAUNCHING


def test_without_a_gpu_the_target_must_be_named(monkeypatch):
    import torch

    import kernelwright
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(errors.MachineError, match="finds no GPU"):
        kernelwright.compile(lambda q: q, ())
