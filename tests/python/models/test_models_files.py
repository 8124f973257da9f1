"""Answers by hand, transcripts, and keys that nobody may see."""

import hashlib
import json
import os
import pathlib
import threading
import time

import pytest

from kernelwright_cli import COMMAND, assert_refused, call
from model_server import NO_KEYS, ask, chat, chat_events, events, reply, serving

CANARY = "sk-canary-7f3a9c51e2"


def by_hand(folder, *words, question="What is 6 * 7?", **more):
    return call("ask", "--api", f"folder:{folder}", *words, stdin=question, **more)


def replayed(transcript, *words, question="What is 6 * 7?"):
    return call("ask", "--api", f"replay:{transcript}", *words, stdin=question, **NO_KEYS)


# ---- a folder

def test_a_question_is_written_and_its_answer_taken_by_the_next_run(tmp_path):
    (tmp_path / "system.md").write_text("Be brief.")
    (tmp_path / "schema.json").write_text('{"type": "integer"}')
    words = ["--system", tmp_path / "system.md", "--schema", tmp_path / "schema.json"]
    run = by_hand(tmp_path / "f", *words)
    assert_refused(run, "model.timeout", tmp_path / "f/001.answer.md", exit_code=3)
    page = (tmp_path / "f/001.request.md").read_text()
    for part in ("Be brief.", "What is 6 * 7?", '"type": "integer"', "ask, attempt 1, sample 1"):
        assert part in page
    assert by_hand(tmp_path / "f", *words).returncode == 3  # the same file again
    (tmp_path / "f/001.answer.md").write_text("42, by hand\n")
    run = by_hand(tmp_path / "f", *words)
    assert (run.returncode, run.stdout) == (0, "42, by hand\n") and "answered by hand" in run.stderr
    assert sorted(os.listdir(tmp_path / "f")) == ["001.answer.md", "001.request.md"]


def test_another_question_is_another_file_and_an_answer_may_be_json(tmp_path):
    by_hand(tmp_path)
    assert "002.answer.md" in by_hand(tmp_path, question="And 7 * 8?").stderr
    (tmp_path / "002.answer.json").write_text("[56]")
    assert by_hand(tmp_path, question="And 7 * 8?").stdout == "[56]\n"
    assert by_hand(tmp_path).returncode == 3


def test_an_answer_is_awaited_until_it_is_whole(tmp_path):
    def write():
        request, answer = tmp_path / "001.request.md", tmp_path / "001.answer.md"
        for _ in range(3000):
            if request.exists():
                break
            time.sleep(0.01)
        answer.write_text("")  # an editor that begins with an empty file
        answer.write_text("42")

    writer = threading.Thread(target=write)
    writer.start()
    run = by_hand(tmp_path, "--wait-seconds", "30")
    writer.join()
    assert (run.returncode, run.stdout) == (0, "42\n"), run.stderr


def test_waiting_ends(tmp_path):
    assert_refused(by_hand(tmp_path, "--wait-seconds", "0.3"), "model.timeout", "waited 0.3 s", exit_code=3)


def test_an_answer_may_be_any_bytes(tmp_path):
    by_hand(tmp_path)
    (tmp_path / "001.answer.md").write_bytes(b"\xff\x00\xfe")
    run = by_hand(tmp_path, "--json")
    assert json.loads(run.stdout)["text_base64"] == "/wD+"


def test_a_folder_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    assert_refused(by_hand(tmp_path / "file"), "model.bad_request", "folder")


# ---- transcripts

@pytest.fixture
def recorded(tmp_path):
    """Two right answers to one question, one error, one answer of bytes; and what was printed."""
    path, printed = tmp_path / "t.jsonl", []
    with serving(chat("forty-two"), chat("42\n\u4e8c"), reply(400, {"error": {"message": "no"}})) as server:
        for question in ("a", "a", "b"):
            run = ask(server, "--transcript", path, question=question)
            printed.append((run.returncode, run.stdout, run.stderr))
    folder = tmp_path / "f"
    by_hand(folder, question="c")
    (folder / "001.answer.md").write_bytes(b"\xffraw")
    out = tmp_path / "bytes"
    assert by_hand(folder, "--transcript", path, "--out", out, question="c").returncode == 0
    assert out.read_bytes() == b"\xffraw"
    return path, printed


def test_a_transcript_gives_everything_again_byte_for_byte(recorded, tmp_path):
    path, printed = recorded
    # Each run takes the first answer, so the second one is asked for from a file without the first.
    lines = path.read_text().splitlines(keepends=True)
    (tmp_path / "rest.jsonl").write_text("".join(lines[1:]))
    for file, question, before in ((path, "a", printed[0]), (tmp_path / "rest.jsonl", "a", printed[1]), (path, "b", printed[2])):
        run = replayed(file, question=question)
        assert (run.returncode, run.stdout, run.stderr) == before
    assert replayed(path, "--out", tmp_path / "again", question="c").returncode == 0
    assert (tmp_path / "again").read_bytes() == b"\xffraw"


def test_a_record_is_canonical_and_its_key_is_the_hash_of_its_request(recorded):
    lines = recorded[0].read_text().splitlines()
    assert len(lines) == 4
    for line in lines:
        record = json.loads(line)
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        request = json.dumps(record["request"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert record["key"] == hashlib.sha256(request.encode()).hexdigest()
    assert json.loads(lines[3])["answer"]["who"] == "by hand"


def test_a_transcript_knows_no_time_no_place_and_no_endpoint(tmp_path):
    texts = set()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "q").write_text("What?")
        with serving(chat("forty-two")) as server:
            ask(server, tmp_path / name / "q", "--transcript", tmp_path / name / "t.jsonl", LC_ALL="C")
        texts.add((tmp_path / name / "t.jsonl").read_text())
    assert len(texts) == 1


def test_a_replay_of_a_replay_is_the_same_transcript(recorded, tmp_path):
    path, _ = recorded
    for question in ("a", "b", "c"):
        replayed(path, "--json", "--transcript", tmp_path / "again.jsonl", question=question)
    lines = path.read_text().splitlines()
    assert (tmp_path / "again.jsonl").read_text().splitlines() == [lines[0], *lines[2:]]


def test_what_is_not_recorded_shows_the_nearest_record(recorded):
    path, _ = recorded
    assert_refused(replayed(path, question="ab"), "model.bad_request", "in 'user' at byte 1", "asked 'b', recorded ''")
    assert_refused(replayed(path, "--most-tokens", 7, question="a"), "model.bad_request", "'most_tokens'", "asked '7'")


@pytest.mark.parametrize("line, said", [("{", "line 2"), ("{}", "line 2"), ("42", "line 2"), (None, "its key is")])
def test_a_file_that_is_no_transcript_is_refused_at_its_line(recorded, tmp_path, line, said):
    lines = recorded[0].read_text().splitlines()
    lines[1] = line if line is not None else lines[1].replace('"user":"a"', '"user":"A"')
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    assert_refused(replayed(tmp_path / "bad.jsonl", question="a"), "model.bad_request", "line 2", said)
    assert_refused(call("transcript", tmp_path / "bad.jsonl"), "model.bad_request", "line 2")


def test_a_transcript_is_shown_to_people_and_programs(recorded):
    path, _ = recorded
    text = call("transcript", path).stdout
    for part in ("1. ask, sample 1, attempt 1", "answered by tiny-1; 9 tokens read, 2 written", "forty-two", "no answer, bad_request",
                 "answered by hand", "not UTF-8 from byte 0", "/3Jhdw=="):
        assert part in text
    assert json.loads(call("transcript", path, "--json").stdout) == [json.loads(line) for line in path.read_text().splitlines()]


# ---- keys

def test_a_key_is_in_nothing_that_anybody_can_see(tmp_path):
    """The server gives the key back in errors, in a name, in an answer cut in two, in headers; the question has it, too."""
    command = tmp_path / "key"
    command.write_text(f"echo {CANARY}\n")
    told = [reply(500, {"error": {"message": f"key {CANARY} is slow"}}), reply(400, f"<p>{CANARY}</p>", "text/html"),
            reply(307, location=f"https://x.example/{CANARY}"), reply(200, "", CANARY), reply(200, {CANARY: 1}),
            events({"error": {"type": CANARY, "message": CANARY}}), events({"choices": CANARY}),
            reply(401, {"error": {"message": CANARY}}),
            events(*chat_events(f"I see {CANARY[:9]}", CANARY[9:] + " here", model=f"m-{CANARY}"))]
    said = ""
    with serving(*told) as server:
        for n in range(len(told)):
            where = ["--key-env", "MINE"] if n % 2 else ["--key-command", f"sh {command}"]
            more = ["--json"] if n % 3 == 0 else []
            run = ask(server, *where, *more, "--retries", 0, "--transcript", tmp_path / "t.jsonl", "--out", tmp_path / f"out{n}",
                      question=f"My key is {CANARY}.", MINE=CANARY)
            said += run.stdout + run.stderr
    assert run.returncode == 0 and "I see [key] here" in (tmp_path / "out8").read_text()
    assert len(server.requests) == len(told)
    assert all(CANARY in r["headers"]["Authorization"] and CANARY not in json.dumps(r["body"]) for r in server.requests)
    assert call("transcript", tmp_path / "t.jsonl").stdout.count("[key]") > len(told)
    command.unlink()
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert len(files) >= 2
    for text in [said.encode(), *(p.read_bytes() for p in files)]:
        assert CANARY.encode() not in text


def test_a_key_leaves_the_environment_before_anything_is_sent():
    """Its process is asked for its environment while it waits for the answer."""
    seen = []

    def look(handler):
        for process in pathlib.Path("/proc").iterdir():
            try:
                if (process / "exe").resolve() == COMMAND.resolve() and b"KW_MARK=1" in (text := (process / "environ").read_bytes()):
                    seen.append(text + (process / "cmdline").read_bytes())
            except OSError:
                pass  # not ours, or gone
        chat("yes")(handler)

    with serving(look) as server:
        assert ask(server, "--key-env", "MINE", MINE=CANARY, KW_MARK="1").returncode == 0
    assert server.requests[0]["headers"]["Authorization"] == f"Bearer {CANARY}"
    assert len(seen) == 1 and b"MINE=" in seen[0] and CANARY.encode() not in seen[0]
