"""`kernelwright serve` from outside: the official client over standard input and output, as an agent's."""

import functools
import json
import os
import signal
import subprocess
import sys

import anyio
import pytest

from kernelwright_cli import COMMAND, KERNEL, ROOT, assert_refused, write_spec
from mcp_client import call, command_for, processes_with, raw_session, serving

PREFIX_LM = "kernelwright://examples/prefix_lm.py"
SM90, SM80 = (f"kernelwright://kernels/{arch}/attention_fwd.cu" for arch in ("sm90", "sm80"))
TOOLS = ["build", "capture", "check", "corpus", "diff", "explain", "lift", "lower", "make", "transfer", "verify"]


# --- the protocol -----------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["auto", "legacy"])  # 2026-07-28 without initialize; 2025-11-25 with it
def test_tools_and_resources_are_listed_in_both_eras(tmp_path, mode):
    async def body(client):
        tools = (await client.list_tools()).tools
        assert [t.name for t in tools] == TOOLS
        for tool in tools:
            assert tool.description and tool.output_schema["properties"]["verdict"]
            assert tool.input_schema["additionalProperties"] is False
        reads = {t.name for t in tools if t.annotations.read_only_hint}
        assert reads == {"corpus", "diff", "explain"}
        runs_python = {t.name for t in tools if t.annotations.open_world_hint}
        assert runs_python == {"capture", "check", "make", "transfer", "verify"}
        uris = {r.uri for r in (await client.list_resources()).resources}
        assert {"kernelwright://docs/tl.md", "kernelwright://laws", PREFIX_LM, SM90} <= uris
        for uri, word in [("kernelwright://docs/tl.md", "wgmma"),
                          ("kernelwright://docs/tl/statements.md", "### wgmma"), ("kernelwright://laws", "wgmma.C1  "),
                          (SM90, "kw::"), (PREFIX_LM, "def prefix_lm")]:
            assert word in (await client.read_resource(uri)).contents[0].text
        corpus, _ = await call(client, "corpus")
        assert SM90 in [k["uri"] for k in corpus["kernels"]] and corpus["root"] == str(tmp_path)
        return client.protocol_version
    assert serving(tmp_path, body, mode=mode) == ("2026-07-28" if mode == "auto" else "2025-11-25")


def request(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
INITIALIZED = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'


def test_garbage_does_not_end_it_and_stdout_holds_nothing_but_the_protocol(tmp_path):
    (tmp_path / "loud.py").write_text("print('hello from a specification')\n1 / 0\n")
    # What lies in the workspace is not imported by the server.
    for name in ("mcp", "json", "anyio"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    out, code = raw_session(tmp_path, [
        b"hello", b"{", b"\xff\xfe\x00", b"[1, 2]", b"x" * 200_000, b'{"jsonrpc": "2.0"}', b'{"id": 7}',
        request(1, "initialize", **HELLO), INITIALIZED,
        request(2, "tools/call", name="no_such_tool", arguments={}), request(3, "no/such/method"),
        request(4, "tools/list"), request(5, "tools/call", name="capture", arguments={"spec": "loud.py"})], last=5)
    answers = {a["id"]: a for a in map(json.loads, out)}
    assert all(a["jsonrpc"] == "2.0" for a in answers.values()) and code == 0
    assert answers[1]["result"]["protocolVersion"] == "2025-06-18"
    assert "error" in answers[3] and len(answers[4]["result"]["tools"]) == len(TOOLS)
    assert "error" in answers[2] or answers[2]["result"]["isError"]
    assert answers[5]["result"]["structuredContent"]["verdict"] == "bad_input"


# --- a port by tool calls ---------------------------------------------------------------------

def test_a_port_of_prefix_lm_and_what_its_checks_find(tmp_path):
    async def body(client):
        does = functools.partial(call, client)
        progress = []
        captured, failed = await does("capture", progress, spec=PREFIX_LM, out="spec")
        assert not failed and "j <= i or j < prefix[b]" in captured["form"] and captured["folder"] == "spec"
        assert (await does("lift", kernel=SM80, out="expert.tl"))[0]["file"] == "expert.tl"
        changed, _ = await does("transfer", progress, program="expert.tl", spec="spec", target="sm_80",
                                out="new.tl")
        assert changed["verdict"] == "holds" and "mask" in {r["rule"] for r in changed["rules"]}
        checked, failed = await does("check", progress, program="new.tl", spec="spec", effort="quick")
        assert not failed and checked["verdict"] == "holds" and checked["effort"] == "quick"
        lowered, _ = await does("lower", program="new.tl", reference=SM80, out="new.cu", patch="new.patch")
        assert 0 < lowered["added"] < 40 and "+++" in (tmp_path / "new.patch").read_text()
        assert (await does("lift", kernel="new.cu"))[0]["text"] == (tmp_path / "new.tl").read_text()
        built, _ = await does("build", progress, kernel="new.cu", target="sm_80", out="new.cubin")
        assert built["spills"] == 0 and (tmp_path / "new.cubin").read_bytes()[:4] == b"\x7fELF"
        differs, failed = await does("diff", a="expert.tl", b="new.tl")
        assert differs["verdict"] == "refuted" and not failed and "prefix" in differs["text"]
        assert progress and all(0 < done < of for done, of, _ in progress)

        # The original program is wrong for this function, and the checker says where.
        wrong, failed = await does("check", program="expert.tl", spec="spec", effort="quick")
        assert wrong["verdict"] == "refuted" and not failed
        assert wrong["counterexample"]["got"] != wrong["counterexample"]["want"]
        text = (tmp_path / "new.tl").read_text()
        assert "l[i] * factor[i]" in text
        (tmp_path / "slip.tl").write_text(text.replace("l[i] = l[i] * factor[i]", "l[i] = l[i] * 1.0"))
        slip, failed = await does("check", program="slip.tl", spec="spec", effort="quick")
        example = slip["counterexample"]
        assert slip["verdict"] == "refuted" and not failed
        assert example["message"] and example["statement"] and min(example["sizes"].values()) >= 1
        assert example["reading"] == "values" or "algebraically" in example["message"]
        assert example["difference"] and example["line"] > 0

        (tmp_path / "law.tl").write_text(text.replace("q_s[me] @ k_s[n].T", "q_s[me] @ v_q[n].T"))
        broken, failed = await does("check", program="law.tl", spec="spec")
        [finding] = broken["findings"][:1]
        assert failed and broken["verdict"] == "bad_input" and finding["place"]["line"] > 0
        laws, _ = await does("explain", law=finding["code"])
        assert [law["law"] for law in laws["laws"]] == [finding["code"]]
        none, failed = await does("explain", law="wgmma.C99")
        assert failed and none["findings"][0]["code"] == "cli.law"
    serving(tmp_path, body)


def test_make_tells_its_stages_as_it_goes_and_its_folder_verifies(tmp_path):
    write_spec(tmp_path, "return (q @ k.mT * 128**-0.5).softmax(-1) @ v")

    async def body(client):
        progress = []
        made, failed = await call(client, "make", progress, spec="attention.py", target="sm_80", effort="quick")
        assert not failed and made["folder"] == "out/attention", made
        assert [s["stage"] for s in made["stages"] if s["stage"]] == [
            "capture", "lift", "transfer", "check", "lower", "build", "wrote"]
        assert [done for done, _, _ in progress] == sorted({done for done, _, _ in progress})
        assert {m.split()[0] for _, _, m in progress if m[0] != " "} >= {"capture", "lift", "build"}
        assert {of for _, of, _ in progress} == {7}
        verified, failed = await call(client, "verify", folder="out/attention", quick=True)
        assert verified["verdict"] == "inconclusive" and not failed and verified["items"]
        (tmp_path / "out/attention/kernel.cu").write_text("// changed\n")
        verified, _ = await call(client, "verify", folder="out/attention", quick=True)
        assert verified["verdict"] == "refuted"
    serving(tmp_path, body)


# --- what a call may name ---------------------------------------------------------------------

def test_paths_outside_of_the_root_are_refused_and_nothing_is_written(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir(), outside.mkdir()
    (outside / "k.cu").write_text(KERNEL.read_text())
    (root / "link").symlink_to(outside)
    (root / "link.cu").symlink_to(outside / "k.cu")
    (root / "k.cu").write_text(KERNEL.read_text())
    (root / "big.cu").write_text("/" * (5 << 20))
    (root / "-x.cu").write_text(KERNEL.read_text())
    refused = [
        ("lift", {"kernel": "../outside/k.cu"}, "serve.outside"),
        ("lift", {"kernel": str(outside / "k.cu")}, "serve.outside"),
        ("lift", {"kernel": "link/k.cu"}, "serve.outside"),
        ("lift", {"kernel": "link.cu"}, "serve.outside"),
        ("lift", {"kernel": "~/k.cu"}, "serve.missing"),
        ("lift", {"kernel": "kernelwright://kernels/../README.md"}, "serve.path"),
        ("lift", {"kernel": "k.cu\0"}, "serve.path"),
        ("lift", {"kernel": "none.cu"}, "serve.missing"),
        ("lift", {"kernel": "big.cu"}, "serve.size"),
        ("lift", {"kernel": "k.cu", "out": "../outside/k.tl"}, "serve.outside"),
        ("lift", {"kernel": "k.cu", "out": "link/k.tl"}, "serve.outside"),
        ("lift", {"kernel": "k.cu", "out": "k.cu"}, "serve.ending"),
        ("lift", {"kernel": "k.cu", "out": "none/k.tl"}, "serve.missing"),
        ("lower", {"program": "k.tl", "reference": "k.cu", "out": "./k.cu"}, "serve.path"),
        ("capture", {"spec": "/etc/passwd"}, "serve.outside"),
        ("capture", {"spec": PREFIX_LM, "out": "../outside/spec"}, "serve.outside"),
        ("make", {"spec": PREFIX_LM, "out": "."}, "serve.path"),
        ("verify", {"folder": "link"}, "serve.outside"),
    ]

    async def body(client):
        for tool, arguments, code in refused:
            result, failed = await call(client, tool, **arguments)
            assert failed and [f["code"] for f in result["findings"]] == [code], (tool, arguments, result)
            assert result["verdict"] == "bad_input"
        for tool, arguments in [("lift", {"kernel": "k.cu", "outt": "k.tl"}), ("explain", {"law": "--help"}),
                                ("capture", {"spec": PREFIX_LM, "function": "--out=x"}), ("lift", {})]:
            text, failed = await call(client, tool, **arguments)
            assert failed and "validation error" in text
        lifted, failed = await call(client, "lift", kernel="-x.cu", out="-.tl")
        assert not failed and (root / "-.tl").read_text() == (await call(client, "lift", kernel="k.cu"))[0]["text"]
    serving(root, body)
    assert [p.name for p in outside.iterdir()] == ["k.cu"] and (root / "k.cu").read_text() == KERNEL.read_text()


def test_no_word_of_a_file_outside_of_the_root_comes_back(tmp_path):
    """By an #include, by a link in a folder that a tool reads, by a vocabulary that a kernel brings."""
    root, secret = tmp_path / "root", tmp_path / "secret.txt"
    root.mkdir()
    secret.write_text("hunter2 is_the_password;\n")
    for name, line in [("absolute", f'#include "{secret}"'), ("above", '#include "../secret.txt"'),
                       ("angles", f"#  include <{secret}>"), ("below", '#include "kw/../../secret.txt"'),
                       ("macro", f'#define FILE "{secret}"\n/**/ %: /**/ include FILE'), ("embed", f'#embed "{secret}"')]:
        (root / f"{name}.cu").write_text(f'#include "kw/kw.cuh"\n{line}\n')
    (root / "spec").mkdir()
    (root / "spec/graph.json").symlink_to(secret)
    (root / "pipe").mkdir()
    os.mkfifo(root / "pipe/kernel.tl")

    async def body(client):
        kernels = sorted(p.name for p in root.glob("*.cu"))
        asked = [(tool, {"kernel": kernel}, "lift.include") for tool in ("lift", "build") for kernel in kernels]
        asked += [("verify", {"folder": "spec"}, "serve.outside"), ("verify", {"folder": "pipe"}, "serve.path"),
                  ("transfer", {"program": "k.tl", "spec": "spec"}, "serve.outside")]
        (root / "k.tl").write_text("")
        for tool, arguments, code in asked:
            extra = {"out": "k.cubin"} if tool == "build" else {}
            result, failed = await call(client, tool, **arguments, **extra)
            assert failed and code in [f["code"] for f in result["findings"]], (tool, arguments, result)
            assert "hunter2" not in json.dumps(result) and "password" not in json.dumps(result)
    serving(root, body)


def test_hidden_characters_of_a_users_file_do_not_reach_the_client(tmp_path):
    (tmp_path / "k.tl").write_text("kernel \x1b[31mred\u202e\u200b\U000e0041 end\n")

    async def body(client):
        for program in ("k.tl", "none\u202e\x1b.tl"):
            result, failed = await call(client, "diff", a=program, b=program)
            text = json.dumps(result, ensure_ascii=False)
            assert failed and not set("\x1b\u202e\u200b\U000e0041") & set(text), ascii(text)
    serving(tmp_path, body)


def test_a_specification_sees_no_keys_of_the_agents_environment(tmp_path):
    (tmp_path / "spy.py").write_text("import os, pathlib\npathlib.Path(__file__ + '.seen').write_text(str(os.environ))\n")

    async def body(client):
        return await call(client, "capture", spec="spy.py")
    # Isolated, it could not write what it sees.
    result, failed = serving(tmp_path, body, SOME_API_KEY="canary-4711", KERNELWRIGHT_ISOLATION="none")
    assert failed and "canary" not in str(result) and "PATH" in (tmp_path / "spy.py.seen").read_text()
    assert "canary" not in (tmp_path / "spy.py.seen").read_text()


# --- calls beside each other, and their ends --------------------------------------------------

SLOW = """import time
time.sleep(1000)
"""


async def until(condition):
    with anyio.fail_after(120):
        while not condition():
            await anyio.sleep(0.05)


def capturing(path):
    """Whether both the command and the Python that it started, in a group of its own, are at work."""
    return len([line for line in processes_with(path).values() if " serve " not in line]) >= 2


def test_a_cancelled_call_ends_all_its_processes_and_others_are_answered_meanwhile(tmp_path):
    slow = "slow_of_a_cancelled_call.py"
    (tmp_path / slow).write_text(SLOW)

    async def body(client):
        heard = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(functools.partial(call, client, "capture", spec=slow))
            await until(lambda: capturing(slow))
            laws, _ = await call(client, "explain", law="wgmma.C1")
            assert laws["laws"]
            async with anyio.create_task_group() as waiting:  # the one place is taken
                waiting.start_soon(functools.partial(call, client, "capture", heard, spec=slow))
                await until(lambda: heard)
                waiting.cancel_scope.cancel()
            assert "waits" in heard[0][2]
            tasks.cancel_scope.cancel()
        await until(lambda: not processes_with(slow))
        assert (await call(client, "explain", law="wgmma"))[0]["verdict"] == "holds"
    serving(tmp_path, body, "--jobs", "1")


@pytest.mark.parametrize("end", ["stdin", "SIGTERM"])
def test_a_server_that_ends_takes_its_stages_with_it(tmp_path, end):
    word = f"slow_when_it_ended_by_{end}.py"
    (tmp_path / word).write_text(SLOW)
    server = subprocess.Popen(command_for(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdin.write(b"\n".join([request(1, "initialize", **HELLO), INITIALIZED, request(
        2, "tools/call", name="capture", arguments={"spec": word}), b""]))
    server.stdin.flush()
    try:
        anyio.run(until, lambda: capturing(word))
        if end == "stdin":
            server.stdin.close()
        else:
            server.send_signal(signal.SIGTERM)
        server.wait(30)
        anyio.run(until, lambda: not processes_with(word))
    finally:
        server.kill()
    assert server.returncode == (0 if end == "stdin" else 128 + signal.SIGTERM)


LOUD = """#!{python}
import sys, time
print("not json", '{{"stage": 1}}', sep="\\n", flush=True)
for stage in ("capture", "", "lift"):
    print('{{"stage": "%s", "text": "done", "seconds": 1}}' % stage, flush=True)
sys.stderr.write('a remark\\n{{\\n "diagnostics": [{{"code": "a.b", "message": "m"}}]}}\\nmore\\n')
{more}
"""


@pytest.mark.parametrize("more, verdict, code, why", [
    ("time.sleep(1000)", "inconclusive", "serve.stopped", "limit of 3 s"),
    ("while True: print('x' * 1000)", "inconclusive", "serve.stopped", "more than 8388608 bytes"),
    ("import os; os.abort()", "own_fault", "internal.serve", "JSON"),
    ("sys.exit(5)", "own_fault", "internal.serve", "JSON"),
], ids=["past the limit", "endless output", "killed", "unknown exit code"])
def test_a_stage_that_misbehaves_is_no_success(tmp_path, more, verdict, code, why):
    program = tmp_path / "program"
    program.write_text(LOUD.format(python=sys.executable, more=more))
    program.chmod(0o755)
    (tmp_path / "s.py").write_text("")

    async def body(client):
        progress = []
        result, failed = await call(client, "make", progress, spec="s.py")
        assert result["verdict"] == verdict and failed == (verdict == "own_fault")
        assert {"a.b", code} == {f["code"] for f in result["findings"]}
        assert why in result["findings"][-1]["message"]
        assert "a remark" in result["remarks"] and result["folder"] == ""
        assert [int(done) for done, _, _ in progress[:3]] == [1, 1, 2]
    serving(tmp_path, body, "--limit", "3" if "sleep" in more else "600", program=program)


# --- starting ---------------------------------------------------------------------------------

def test_what_it_lacks_is_said_before_it_starts(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} -S "$@"\n')
    bare.chmod(0o755)
    run = subprocess.run(command_for(tmp_path), text=True, capture_output=True, stdin=subprocess.DEVNULL,
                         env={**os.environ, "KERNELWRIGHT_PYTHON": str(bare)})
    assert_refused(run, "serve.sdk", "pip install")
    assert run.stdout == ""
    run = subprocess.run(command_for(tmp_path / "none"), text=True, capture_output=True, stdin=subprocess.DEVNULL)
    assert_refused(run, "serve.root", "none")
    assert COMMAND.parent == ROOT / "build"
