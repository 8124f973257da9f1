#!/usr/bin/env python3
"""A Python for the built command whose captures need not import PyTorch: KERNELWRIGHT_PYTHON for tests.

Most tests of the command capture a function, and of a capture's four seconds three are imports. As `python -m
kernelwright.capture ...` this file hands its arguments, environment and streams to a server that has imported all
of it, which forks for each: the same code runs in a process of its own, as it would after an import. Whatever else
it is asked for, and a capture by another clone's package, it gives to the real Python.

The first call starts the server, in the background, and runs without it. The server ends with the process that
WARM_OWNER names (conftest.py), and a capture ends with the process that asked for it.
"""
import array
import json
import os
import socket
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
PYTHON = os.path.join(ROOT, ".venv/bin/python")
MODULE = ["-m", "kernelwright.capture"]


def run_cold(words):
    os.execv(PYTHON, [PYTHON, *words])


def main(words):
    place = os.environ.get("WARM_SOCKET")
    ours = os.environ.get("PYTHONPATH") == os.path.join(ROOT, "python")
    if not place or words[:2] != MODULE or not ours:
        run_cold(words)
    server = socket.socket(socket.AF_UNIX)
    try:
        server.connect(place)
    except OSError:
        try:
            os.close(os.open(place + ".starting", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            run_cold(words)  # another call is starting it
        if os.fork() == 0:
            os.setsid()
            os.environ["TMPDIR"] = os.path.dirname(place)  # that of its first caller goes away before it
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(nothing, stream)
            os.execv(PYTHON, [PYTHON, os.path.realpath(__file__), "--serve", place])
        run_cold(words)
    asked = json.dumps({"words": words[2:], "folder": os.getcwd(), "environment": dict(os.environ)}).encode()
    streams = array.array("i", [0, 1, 2])
    server.sendmsg([len(asked).to_bytes(8, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
    server.sendall(asked)
    said = server.recv(1)
    if said:
        os._exit(said[0])
    run_cold(words)  # it ended without a word, by a signal: whoever asked is to see which


def serve(place):
    import select
    import signal
    sys.path.insert(0, os.path.join(ROOT, "python"))
    import kernelwright.capture.__main__ as capture  # noqa: F401
    import torch
    import torch.export._trace  # noqa: F401
    import kernelwright.capture.goldens  # noqa: F401
    assert torch.get_num_threads() > 0
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    owner = int(os.environ["WARM_OWNER"])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        ready, _, _ = select.select([listener], [], [], 2)
        if not ready:
            try:
                os.kill(owner, 0)
            except ProcessLookupError:
                return
            continue
        asker, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            answer(asker, capture)
        asker.close()


def answer(asker, capture):
    """In a process of its own: what `python -m kernelwright.capture` would do; never returns."""
    import threading
    import traceback
    head, rights, _, _ = asker.recvmsg(8, socket.CMSG_SPACE(3 * 4))
    streams = array.array("i")
    streams.frombytes(rights[0][2])
    for stream, given in enumerate(streams):
        os.dup2(given, stream)
        os.close(given)
    size, text = int.from_bytes(head, "little"), b""
    while len(text) < size:
        text += asker.recv(size - len(text))
    asked = json.loads(text)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    sys.argv = [os.path.join(ROOT, "python/kernelwright/capture/__main__.py"), *asked["words"]]
    # Who asked is gone: so is the capture.
    threading.Thread(target=lambda: (asker.recv(1), os._exit(1)), daemon=True).start()
    code = 0
    try:
        capture.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    asker.send(bytes([code]))
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[2]) if sys.argv[1:2] == ["--serve"] else main(sys.argv[1:])
