"""What a specification may do while it is captured: the sandbox, the limits, and what is left afterwards.

Nothing here is captured in the process that other tests share, which is in no sandbox: each capture starts a Python.
Its specifications do what they are asked for before PyTorch is imported, and end with an error: then a capture takes
as long as importing it.
"""

import errno
import functools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import pytest

from kernelwright.capture import diagnostic
from kernelwright_cli import COMMAND, KERNEL, ROOT, assert_refused, call, write_spec

call = functools.partial(call, KERNELWRIGHT_PYTHON=str(ROOT / ".venv/bin/python"), KERNELWRIGHT_ISOLATION="")
TRIAL = subprocess.run(["sh", "-c", "exec bwrap --unshare-all --ro-bind / / --dev /dev --proc /proc true"],
                       text=True, capture_output=True)
isolated = pytest.mark.skipif(TRIAL.returncode != 0, reason=f"bubblewrap cannot run here: {TRIAL.stderr.strip()}")


def spy(folder, text):
    """A specification that does `text` when it is imported, and says what it found as its error."""
    path = folder / "spy.py"
    path.write_text(f"import os, json\nfound = {{}}\n{text}\nraise ValueError(json.dumps(found))\n")
    return path


def found(run):
    assert_refused(run, "spec.run", "ValueError")
    return json.JSONDecoder().raw_decode(run.stderr, run.stderr.index("{"))[0]


# --- the sandbox ------------------------------------------------------------------------------

# Short, since a message is: an exception's text is cut at 300 characters.
ATTEMPTS = """
import errno, pathlib, socket, tempfile
def attempt(name, what):
    try:
        found[name] = str(what())[:12]
    except OSError as error:
        found[name] = errno.errorcode.get(error.errno, str(error.errno))
attempt("net", lambda: socket.create_connection(("127.0.0.1", PORT), 5).close())
attempt("run", lambda: socket.socket(socket.AF_UNIX).connect(SERVICE))
attempt("beside", lambda: pathlib.Path(__file__ + ".new").write_text(""))
attempt("near", lambda: pathlib.Path(__file__).with_name("near.txt").read_text())
attempt("others", lambda: open(OTHERS).read())
attempt("made", lambda: tempfile.mkdtemp().startswith(os.environ["TMPDIR"]))
attempt("processes", lambda: sum(name.isdigit() for name in os.listdir("/proc")))
if os.environ["KERNELWRIGHT_ISOLATED"]:
    attempt("caps", lambda: int(open("/proc/self/status").read().split("CapEff:")[1].split()[0], 16))
    attempt("tmp", lambda: pathlib.Path("/tmp/mine").write_text("mine"))
    attempt("home", lambda: pathlib.Path.home().joinpath("kw-written").write_text(""))
    attempt("usr", lambda: pathlib.Path("/usr/kw-written").write_text(""))
    attempt("mount", lambda: os.system("mount -o remount,rw / 2> /dev/null") and "refused")
"""


@isolated
def test_a_specification_has_no_network_no_services_its_own_tmp_and_cannot_write(tmp_path):
    """And whichever way it is captured, TMPDIR is as before."""
    (tmp_path / "tmp").mkdir()
    again = functools.partial(call, TMPDIR=str(tmp_path / "tmp"))
    (tmp_path / "near.txt").write_text("readable")
    others, service = pathlib.Path(f"/tmp/kw-others-{os.getpid()}"), pathlib.Path(f"/run/kw-service-{os.getpid()}")
    others.write_text("another's")
    written = [pathlib.Path("/tmp/mine"), pathlib.Path.home() / "kw-written", pathlib.Path("/usr/kw-written")]
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as listener:
            reach = os.access("/run", os.W_OK)
            if reach:
                listener.bind(str(service))
                listener.listen()
            text = ATTEMPTS.replace("PORT", str(server.getsockname()[1])).replace("OTHERS", repr(str(others)))
            spec = spy(tmp_path, text.replace("SERVICE", repr(str(service))))
            got = found(again("capture", spec))
            assert not os.listdir(tmp_path / "tmp")
            assert not pathlib.Path(f"{spec}.new").exists() and not any(p.exists() for p in written)
            without = found(again("capture", spec, KERNELWRIGHT_ISOLATION="none"))
            assert not os.listdir(tmp_path / "tmp")
    finally:
        for path in (others, service, *written):
            path.unlink(missing_ok=True)
    assert got.pop("net") in ("ECONNREFUSED", "ENETUNREACH") and int(got.pop("processes")) <= 5
    assert got == {"run": "ENOENT", "beside": "EROFS", "home": "EROFS", "usr": "EROFS", "mount": "refused",
                   "others": "ENOENT", "near": "readable", "tmp": "4", "made": "True",
                   "caps": "0"}
    # The attempts themselves are sound: each succeeds where nothing isolates.
    assert int(without.pop("processes")) > 5
    assert without == {"net": "None", "run": "None" if reach else "ENOENT", "beside": "0", "near": "readable",
                       "others": "another's", "made": "True"}


@isolated
def test_a_function_is_captured_in_it_from_tmp_and_through_links_as_without(tmp_path):
    """The whole way: a file below /tmp that imports a neighbour, named through a link and from its own folder."""
    with_helper = write_spec(tmp_path, "return (q @ k.mT * helper.SCALE).softmax(-1) @ v")
    with_helper.write_text("import helper\n" + with_helper.read_text())
    (tmp_path / "helper.py").write_text("SCALE = 0.0625\n")
    (tmp_path / "link").symlink_to(tmp_path)
    run = call("capture", "link/attention.py", "--out", "spec/", cwd=tmp_path, KERNELWRIGHT_ISOLATION="bubblewrap")
    assert run.returncode == 0, run.stderr
    assert {p.name for p in (tmp_path / "spec").iterdir()} == {
        "graph.json", "goldens.json", "source.py", "truth.npy", "own_error.npy"}
    assert {p.name for p in tmp_path.iterdir()} == {"attention.py", "helper.py", "link", "spec"}  # no __pycache__


@isolated
def test_what_fails_for_the_isolation_says_so(tmp_path):
    run = call("capture", spy(tmp_path, "import urllib.request\nurllib.request.urlopen('https://example.org')"))
    assert_refused(run, "spec.run", "spy.py:4", "URLError", "without a network", "docs/deployment/isolation.md")


@pytest.mark.parametrize("isolated_by", ["1", ""])
def test_the_hint_is_by_what_was_behind_the_exception(monkeypatch, isolated_by):
    monkeypatch.setenv("KERNELWRIGHT_ISOLATED", isolated_by)
    refused = RuntimeError("no weights")
    refused.__context__ = socket.gaierror(-3, "Temporary failure in name resolution")
    for error, words in [(OSError(errno.EROFS, "", "/etc/x"), "only /tmp can be written"), (refused, "without a network"),
                         (FileNotFoundError(errno.ENOENT, "", "/tmp/a.pt"), "a /tmp and a /run of its own")]:
        assert words in diagnostic.of_isolation(error) if isolated_by else diagnostic.of_isolation(error) == ""
    assert diagnostic.of_isolation(FileNotFoundError(errno.ENOENT, "", "a.pt")) == ""
    assert "limit of memory" in diagnostic.of_isolation(MemoryError())


def test_bubblewrap_that_is_asked_for_and_does_not_work_is_refused_and_doctor_tells(tmp_path):
    """A bwrap that the kernel forbids, none at all, and a word that means nothing."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bwrap").write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo bubblewrap 9\n'
                                        'echo "bwrap: setting up uid map: Permission denied" >&2; exit 1\n')
    (tmp_path / "bin/bwrap").chmod(0o755)
    forbidden = f"{tmp_path}/bin:{os.environ['PATH']}"
    (tmp_path / "none").mkdir()
    for tool in ("env", "sh", "rm"):
        (tmp_path / "none" / tool).symlink_to(shutil.which(tool))
    spec = spy(tmp_path, "")
    for path, why in [(forbidden, "uid map: Permission denied"), (tmp_path / "none", "bwrap is not on the PATH")]:
        run = call("capture", spec, PATH=str(path), KERNELWRIGHT_ISOLATION="bubblewrap")
        assert_refused(run, "driver.isolation", "KERNELWRIGHT_ISOLATION asks for bubblewrap", why)
    assert_refused(call("capture", spec, KERNELWRIGHT_ISOLATION="docker"), "driver.isolation", "'docker'", "none or bubblewrap")
    assert found(call("capture", spec, PATH=forbidden)) == {}  # not asked for: it runs without
    doctor = call("doctor", PATH=forbidden)
    assert doctor.returncode == 0 and "isolation  none: bwrap cannot run here: bwrap: setting up uid map" in doctor.stdout


@isolated
def test_doctor_says_what_isolates():
    run = call("doctor")
    assert run.returncode == 0 and "ok   isolation  bubblewrap " in run.stdout, run.stdout


# --- limits -----------------------------------------------------------------------------------

# Children that share PyTorch's pages with their parent, which are no memory of their own.
MANY = """
import time
for _ in range(100):
    if os.fork() == 0:
        time.sleep(100)
        os._exit(0)
time.sleep(100)
"""
# Children that leave their parent and its process group.
ORPHANS = MANY.replace("        time", "        os.setsid()\n        if os.fork(): os._exit(0)\n        time")


def processes_of(path):
    """Living processes that have `path` in their command line."""
    living = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if str(path).encode() in (process / "cmdline").read_bytes() and process.name != str(os.getpid()):
                state = (process / "stat").read_text().rpartition(")")[2].split()[0]
                living += [process.name] * (state != "Z")
        except OSError:
            pass
    return living


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.mark.parametrize("isolation, text", [pytest.param("", MANY, marks=isolated), ("none", ORPHANS)])
def test_a_capture_that_starts_many_processes_is_ended_with_all_of_them(tmp_path, isolation, text):
    spec = spy(tmp_path, text)
    run = call("capture", spec, KERNELWRIGHT_ISOLATION=isolation)
    assert_refused(run, "spec.limit", "took more than 64 processes", "spy.py", "isolation.md")
    assert until(lambda: not processes_of(spec))


def test_memory_beyond_the_limit_is_refused_at_its_line(tmp_path):
    spec = spy(tmp_path, """import resource, torch
found["limit"] = resource.getrlimit(resource.RLIMIT_DATA)[0]
try:
    torch.empty(2**60, dtype=torch.uint8)
except RuntimeError as error:
    raise ValueError(json.dumps(found)) from error""")
    run = call("capture", spec)
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found(run)["limit"] == pytest.approx(min(32 << 30, machine * 3 // 4), rel=0.01)
    assert_refused(run, "spec.run", "spy.py:8", "within a limit of memory")


# --- what is left -----------------------------------------------------------------------------

@pytest.mark.parametrize("isolation, end", [pytest.param("", signal.SIGKILL, marks=isolated), ("none", signal.SIGTERM)])
def test_a_capture_dies_with_the_command_and_leaves_nothing(tmp_path, isolation, end):
    """Also what it started itself, in its process group."""
    (tmp_path / "tmp").mkdir()
    spec = spy(tmp_path, "import subprocess\nsubprocess.run(['sh', '-c', 'sleep 1000; true', __file__])")
    process = subprocess.Popen([COMMAND, "capture", spec], env={
        **os.environ, "KERNELWRIGHT_PYTHON": str(ROOT / ".venv/bin/python"), "KERNELWRIGHT_ISOLATION": isolation,
        "TMPDIR": str(tmp_path / "tmp")})
    try:
        def at_work():
            return any(b"sleep 1000" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes() for p in processes_of(spec))
        assert until(at_work)
        assert os.listdir(tmp_path / "tmp")
        process.send_signal(end)
        process.wait()
        assert until(lambda: not processes_of(spec)) and until(lambda: not os.listdir(tmp_path / "tmp"))
    finally:
        process.kill()


# --- ends that are the machine's or the file's ------------------------------------------------

def test_a_python_that_is_not_there_or_lacks_numpy_is_named(tmp_path):
    run = call("capture", spy(tmp_path, ""), KERNELWRIGHT_PYTHON="/nowhere/python")
    assert_refused(run, "driver.python", "'/nowhere/python'", "No such file", "KERNELWRIGHT_PYTHON")
    bare = tmp_path / "python"
    bare.write_text(f"""#!{ROOT}/.venv/bin/python
import runpy, sys
class Lacks:
    def find_spec(name, path=None, target=None):
        if name == "numpy":
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
sys.meta_path.insert(0, Lacks)
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
""")
    bare.chmod(0o755)
    run = call("capture", write_spec(tmp_path), KERNELWRIGHT_PYTHON=str(bare))
    assert_refused(run, "driver.python", "has no numpy", "a capture needs")


@isolated
def test_no_room_for_temporary_files_is_said(tmp_path):
    """TMPDIR is a file system of 100 kB."""
    spec = write_spec(tmp_path)
    run = subprocess.run(
        ["bwrap", "--dev-bind", "/", "/", "--size", "100000", "--tmpfs", "/mnt", str(COMMAND), "capture", str(spec)],
        text=True, capture_output=True, env={**os.environ, "KERNELWRIGHT_PYTHON": str(ROOT / ".venv/bin/python"),
                                             "KERNELWRIGHT_ISOLATION": "none", "TMPDIR": "/mnt"})
    assert_refused(run, "driver.scratch", "cannot be written", "TMPDIR")


def test_names_that_are_too_long_or_no_text_are_refused(tmp_path):
    spec = write_spec(tmp_path)
    for command in ("capture", "make"):
        run = call(command, spec, "--out", "x" * 300, cwd=tmp_path)
        assert_refused(run, "driver.out", "300 bytes", "at most 2")
        run = call(command, spec, "--out", "/".join(["d" * 200] * 30), cwd=tmp_path)
        assert_refused(run, "driver.out", "at most 4")
    for name in [b"..py", b"a..b.py", b"\xff.py"]:
        path = os.fsencode(tmp_path) + b"/" + name
        shutil.copy(spec, path)
        run = subprocess.run([COMMAND, "make", path], capture_output=True, cwd=tmp_path)
        assert run.returncode == 2 and b"[spec.name]" in run.stderr and b"rename" in run.stderr, run.stderr
    assert not (tmp_path / "out").exists()


def test_a_vocabulary_that_leads_elsewhere_is_not_read(tmp_path):
    """As one that a made folder brings: a link to a file of another name, an include of one."""
    shutil.copytree(ROOT / "cuda", tmp_path / "cuda")
    header, secret = tmp_path / "cuda/kw/scalar.cuh", tmp_path / "secret.txt"
    secret.write_text("hunter2 is_the_password;\n")
    text = header.read_text()
    header.unlink()
    header.symlink_to(secret)
    run = call("lift", KERNEL, KERNELWRIGHT_HOME=str(tmp_path))
    assert_refused(run, "lift.include", "scalar.cuh", "leads to", "secret.txt")
    header.unlink()
    header.write_text(f'#include "{secret}"\n{text}')
    linked = call("lift", KERNEL, KERNELWRIGHT_HOME=str(tmp_path))
    assert_refused(linked, "lift.include", "scalar.cuh:1:1", "only files of kw/")
    assert "hunter2" not in run.stderr + linked.stderr
    header.unlink()
    header.symlink_to(ROOT / "cuda/kw/scalar.cuh")  # an installation made of links
    assert call("lift", KERNEL, KERNELWRIGHT_HOME=str(tmp_path)).returncode == 0


def test_a_locale_without_letters_changes_no_message(tmp_path):
    (tmp_path / "é").mkdir()
    (tmp_path / "é/ß.py").write_text("x = 'ü'\n1 +\n")
    run = call("capture", "é/ß.py", cwd=tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert_refused(run, "spec.syntax", "é/ß.py:2:", "1 +")
