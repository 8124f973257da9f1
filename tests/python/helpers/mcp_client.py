"""How tests talk to `kernelwright serve`: the protocol's official client, or lines as they are."""

import json
import os
import pathlib
import subprocess
import sys
import threading

import anyio
from mcp import Client, StdioServerParameters

from kernelwright_cli import COMMAND

PLENTY = 900  # seconds, for a machine that does much else


def command_for(root, *words):
    return [str(COMMAND), "serve", "--root", str(root), *words]


def serving(root, body, *words, mode="auto", program=None, log=None, **environment):
    """Runs `await body(client)` against a server for the folder `root`, and gives its result. With
    `program`, the server's stages are that program instead of ours."""
    first, *rest = command_for(root, *words)
    if program:  # past the C++ command, which would name itself
        first, rest = sys.executable, ["-m", "kernelwright.serve", "--root", str(root), *words]
        environment = {"KERNELWRIGHT_PROGRAM": str(program), "PYTHONPATH": str(COMMAND.parents[1] / "python"),
                       "KERNELWRIGHT_HOME": str(COMMAND.parents[1]), **environment}
    parameters = StdioServerParameters(command=first, args=rest, env={"PATH": os.environ["PATH"], **environment})

    async def main():
        with anyio.fail_after(PLENTY):
            async with Client(parameters, mode=mode) as client:
                return await body(client)
    return anyio.run(main)


async def call(client, tool, progress=None, **arguments):
    """(structured content, whether it is an error) of a tool's answer; what it said in `progress`."""
    async def told(done, of, message):
        if progress is not None:
            progress.append((done, of, message))
    result = await client.call_tool(tool, arguments, progress_callback=told)
    if result.structured_content is None:
        return result.content[0].text, result.is_error
    short = json.loads(result.content[0].text)
    assert short["verdict"] == result.structured_content["verdict"] and short.keys() <= result.structured_content.keys()
    return result.structured_content, result.is_error


def processes_with(word):
    """The command lines of the processes that have `word` in theirs, ourselves left out."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if entry.name.isdigit() and int(entry.name) != os.getpid() and word in line and state != "Z":
            found[int(entry.name)] = line
    return found


def raw_session(root, lines, last):
    """Writes lines (bytes) to a server, and closes its input once the request `last` is answered: (lines of
    standard output, exit code)."""
    server = subprocess.Popen(command_for(root), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stop = threading.Timer(PLENTY, server.kill)
    stop.start()
    try:
        server.stdin.write(b"\n".join(lines) + b"\n")
        server.stdin.flush()
        out = []
        while not out or json.loads(out[-1]).get("id") != last:
            out.append(server.stdout.readline())
            assert out[-1], "it ended without an answer"
        rest, _ = server.communicate()
        return [*out, *rest.splitlines()], server.returncode
    finally:
        stop.cancel()
        server.kill()
