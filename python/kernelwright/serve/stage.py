"""One stage of one call: `kernelwright COMMAND ...` as a process, and what it said.

No shell is involved. The process leads a session of its own, because a stage starts others (Python, to
capture) in process groups of their own: who ends a call ends the whole session. That happens when the
client cancels, when the connection ends, at the limit of time, and when a stage says more than a stage
says; a server that is itself told to end (SIGTERM) takes its stages with it.

Progress. A stage that has stages in it (`make`) writes one JSON line each; `said` gets them. In between a
heartbeat says that it is alive. The number only ever rises: whole stages, plus a part that nears 1 with
time.

The environment is an allow-list: a specification is the user's code, and has no use for the keys that
an agent's environment may hold.
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from ..commands import environment

MOST_SAID = 8 << 20  # bytes on either stream
HEARTBEAT = 2.0  # seconds
_NAMES = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "TZ", "VIRTUAL_ENV", "LD_LIBRARY_PATH",
          "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "CUDA_CACHE_DISABLE", "OMP_NUM_THREADS",
          "KERNELWRIGHT_HOME", "KERNELWRIGHT_PYTHON", "KERNELWRIGHT_LIBCLANG", "KERNELWRIGHT_Z3", "KERNELWRIGHT_NVRTC",
          "KERNELWRIGHT_ISOLATION", "KERNELWRIGHT_TILES", "KERNELWRIGHT_LAUNCH", "XDG_CACHE_HOME", "XDG_DATA_HOME",
          "XDG_STATE_HOME"}

_alive = set()  # process ids of stages, which lead their sessions


@dataclass
class Said:
    """What a stage left. `objects` are the JSON objects of standard error, `remarks` the rest of it."""
    exit_code: int
    out: str
    objects: list = field(default_factory=list)
    remarks: str = ""
    stopped: str = ""  # why we ended it ourselves; empty where it ended
    words: list = field(default_factory=list)  # its command line


async def run(program, words, root, progress, stages=1, limit_s=3600):
    """Runs `program words...` in `root` and waits. `progress(done, of, message)` is awaited now and then.

    Cancelled, it ends the process and every process of its session before it passes the cancellation on.
    Raises OSError where the program cannot be started.
    """
    with anyio.CancelScope(shield=True):  # cancelled while it starts, its number would be nobody's
        process = await anyio.open_process([program, *words], cwd=root, env=_environment(), start_new_session=True,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    _alive.add(process.pid)
    streams = {"out": bytearray(), "err": bytearray()}
    pulse = _Pulse(words[0], stages, progress)
    stopped = ""
    try:
        with anyio.move_on_after(limit_s) as limit:
            async with anyio.create_task_group() as watch:
                watch.start_soon(pulse.beat)
                async with anyio.create_task_group() as readers:
                    readers.start_soon(_read, process.stdout, streams["out"], watch.cancel_scope, pulse.line)
                    readers.start_soon(_read, process.stderr, streams["err"], watch.cancel_scope)
                await process.wait()
                watch.cancel_scope.cancel()
        if limit.cancelled_caught:
            stopped = f"it ran past the limit of {limit_s:g} s"
        elif max(map(len, streams.values())) > MOST_SAID:
            stopped = f"it wrote more than {MOST_SAID} bytes"
    finally:
        end_session(process.pid)
        with anyio.CancelScope(shield=True):
            await process.aclose()
        _alive.discard(process.pid)
    objects, remarks = _objects(streams["err"].decode(errors="replace"))
    return Said(process.returncode, streams["out"].decode(errors="replace"), objects, remarks, stopped, words)


async def _read(stream, into, give_up, line=None):
    """Reads to the end, or cancels `give_up` where there is too much; `line` gets each whole line."""
    begun = 0
    async for chunk in stream:
        into += chunk
        if len(into) > MOST_SAID:
            give_up.cancel()
            return
        while line and (end := into.find(b"\n", begun)) >= 0:
            await line(bytes(into[begun:end]))
            begun = end + 1


class _Pulse:
    """Progress that only rises."""

    def __init__(self, command, stages, progress):
        self.command, self.stages, self.progress = command, stages, progress
        self.done, self.last, self.since, self.start = 0, 0.0, time.monotonic(), time.monotonic()

    async def _tell(self, value, message):
        self.last = max(value, self.last + 1e-6)
        await self.progress(self.last, max(self.stages, self.done), message)

    async def line(self, text):
        try:
            said = json.loads(text)
            stage, told = said["stage"], said["text"]
        except (ValueError, KeyError, TypeError):
            return  # a line of the result
        if stage:
            self.done, self.since = self.done + 1, time.monotonic()
        await self._tell(self.done, f"{stage:<9} {told}")

    async def beat(self):
        while True:
            await anyio.sleep(HEARTBEAT)
            t = time.monotonic() - self.since
            await self._tell(self.done + t / (t + 30), f"{self.command}: {time.monotonic() - self.start:.0f} s")


def end_session(leader):
    """Kills every process of the session that `leader` leads, and all that descend from one; none left is fine.

    A sandbox takes a session of its own, and one whose parent is killed before it has asked to die with it
    would outlive everybody: so all are stopped first, and looked for again until nobody is left who can start one.
    """
    for _ in range(1000):  # a millisecond each
        members = _members(leader)
        running = [pid for pid, state in members.items() if state not in "Tt"]
        if not running:
            break
        _signal_all(running, signal.SIGSTOP)
        time.sleep(0.001)
    _signal_all(members, signal.SIGKILL)


def _signal_all(processes, number):
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _members(leader):
    """The states, by process id, of those of the session and of their descendants."""
    children, members = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):  # no process, or one that has gone
            continue
        if state == "Z":
            continue
        children.setdefault(int(parent), []).append((int(entry.name), state))
        if int(session) == leader:
            members[int(entry.name)] = state
    found = list(members)
    for pid in found:
        for child, state in children.get(pid, ()):
            if child not in members:
                members[child] = state
                found.append(child)
    return members


def end_all():
    for leader in list(_alive):
        end_session(leader)


def _environment():
    return {name: value for name, value in environment().items() if name in _NAMES or name.startswith("LC_")}


def _objects(text):
    """The JSON objects that begin a line of `text`, and the text around them."""
    objects, remarks, at = [], [], 0
    decode = json.JSONDecoder().raw_decode
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        if text[at] == "{":
            try:
                found, end = decode(text, at)
                objects.append(found)
                at = end + 1
                continue
            except ValueError:
                pass
        remarks.append(text[at:end])
        at = end
    return objects, "".join(remarks)
