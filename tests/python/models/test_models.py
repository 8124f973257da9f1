"""Endpoints that work, in their three protocols: what is sent, and what is made of their answers."""

import json
import subprocess

import pytest

from kernelwright_cli import assert_refused, call
from model_server import (NO_KEYS, anthropic_events, ask, chat, chat_events, events, reply, responses_events, serving,
                          tls_of)

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
STREAMS = {"chat": chat_events, "responses": responses_events, "anthropic": anthropic_events}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "anthropic": "/v1/messages"}
WHOLE = {
    "chat": {"model": "tiny-1", "choices": [{"message": {"content": "forty-two"}, "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 9, "completion_tokens": 2}},
    "responses": {"model": "tiny-1", "status": "completed", "usage": {"input_tokens": 9, "output_tokens": 2},
                  "output": [{"type": "reasoning"}, {"content": [{"type": "output_text", "text": "forty-two"}]}]},
    "anthropic": {"model": "tiny-1", "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 2},
                  "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "forty-two"}]},
}


@pytest.mark.parametrize("api", STREAMS)
@pytest.mark.parametrize("cuts", [None, 7])
def test_a_streamed_answer_is_put_together(api, cuts):
    with serving(events(*STREAMS[api]("forty", "-", "t\u00fc\u4e8c"), cuts=cuts)) as server:
        run = ask(server, "--json", api=api)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {"text": "forty-t\u00fc\u4e8c", "who": "tiny-1", "complete": True, "tokens_in": 9,
                                      "tokens_out": 2, "dollars": 0.0}
    assert server.requests[0]["path"] == PATHS[api] and len(server.requests) == 1


@pytest.mark.parametrize("api", WHOLE)
def test_a_server_that_does_not_stream_is_understood(api):
    with serving(reply(200, WHOLE[api])) as server:
        run = ask(server, api=api)
    assert (run.returncode, run.stdout) == (0, "forty-two\n"), run.stderr
    assert "answered by tiny-1; 9 tokens read, 2 written" in run.stderr


def test_system_user_schema_and_fields_of_ones_own_are_sent(tmp_path):
    (tmp_path / "system.md").write_text("Be brief.")
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    words = ["--system", tmp_path / "system.md", "--schema", tmp_path / "schema.json", "--most-tokens", 77, "--body",
             '{"temperature": 0, "stream_options": null}']
    bodies = {}
    for api, stream in STREAMS.items():
        with serving(events(*stream('{"n": 42}'))) as server:
            assert ask(server, *words, api=api).stdout == '{"n": 42}\n'
        bodies[api] = server.requests[0]["body"]
    assert bodies["chat"] == {
        "model": "tiny", "stream": True, "max_tokens": 77, "temperature": 0,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is 6 * 7?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}}}
    assert bodies["responses"] == {
        "model": "tiny", "stream": True, "max_output_tokens": 77, "temperature": 0, "store": False,
        "instructions": "Be brief.", "input": "What is 6 * 7?",
        "text": {"format": {"type": "json_schema", "name": "answer", "strict": True, "schema": SCHEMA}}}
    assert bodies["anthropic"] == {
        "model": "tiny", "stream": True, "max_tokens": 77, "temperature": 0,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "What is 6 * 7?"}],
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}


@pytest.mark.parametrize("api, header, value", [("chat", "Authorization", "Bearer k-123456789"),
                                                ("anthropic", "x-api-key", "k-123456789")])
def test_a_key_is_sent_in_its_header_and_only_where_it_was_named(api, header, value):
    with serving(events(*STREAMS[api]("yes"))) as server:
        assert ask(server, "--key-env", "MINE", api=api, MINE="k-123456789").returncode == 0
        assert ask(server, "--key-command", "echo k-123456789", api=api).returncode == 0
        # The vendors' variables are not for other endpoints.
        assert ask(server, api=api, OPENAI_API_KEY="k-123456789", ANTHROPIC_API_KEY="k-123456789").returncode == 0
    sent = [r["headers"].get(header) for r in server.requests]
    assert sent == [value, value, None]


@pytest.mark.parametrize("api, why, more", [("chat", "length", {}), ("anthropic", "max_tokens", {}),
                                            ("responses", "", {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}})])
def test_an_answer_at_its_limit_of_tokens_is_given_and_inconclusive(api, why, more):
    stream = STREAMS[api]("forty-", **({"why": why} if why else more))
    with serving(events(*stream)) as server:
        run = ask(server, api=api)
    assert run.stdout == "forty-\n"
    assert_refused(run, "ask.cut", "limit", exit_code=3)


def test_settings_come_from_a_file_and_options_win(tmp_path):
    with serving(chat("yes")) as server:
        (tmp_path / "p.json").write_text(json.dumps({"model": "filed", "endpoint": server.endpoint + "/v1", "body": {"seed": 1}}))
        for words, model in ([], "filed"), (["--model", "said"], "said"):
            run = call("ask", "--provider", tmp_path / "p.json", *words, stdin="?", **NO_KEYS)
            assert run.returncode == 0, run.stderr
            assert server.requests[-1]["body"]["model"] == model and server.requests[-1]["body"]["seed"] == 1
    assert {r["path"] for r in server.requests} == {"/v1/chat/completions"}


@pytest.mark.parametrize("settings, said", [
    ({"modle": "x"}, "'modle'"), ({"model": 3}, "'model' is 3, and must be a text"), ({"retries": -1}, "whole number from 0"),
    ({"idle_seconds": "soon"}, "a number from 0"), ([1], "not a JSON object"), ({"body": {"messages": []}}, "'messages'"),
    ({"key_env": "A", "key_command": "b"}, "one of them"), ({"budget_dollars": 2}, "--price-in"),
    ({"model": "m", "endpoint": "ftp://x"}, "'ftp://x'"), ({"model": "m", "endpoint": "http://10.0.0.1"}, "--allow-http"),
    ({"model": "m", "endpoint": "http://127.0.0.1.evil.example"}, "--allow-http"),
    ({"model": "m", "endpoint": "https://me:k-123456789@x.example"}, "--key-env"), ({"endpoint": "http://localhost"}, "--model"),
    ({"api": "telepathy"}, "'telepathy'"), ({"api": "folder:"}, "no path")])
def test_settings_that_cannot_be_are_refused_before_anything_is_sent(settings, said, tmp_path):
    (tmp_path / "p.json").write_text(json.dumps(settings))
    run = call("ask", "--provider", tmp_path / "p.json", stdin="?", **NO_KEYS)
    assert_refused(run, "model.bad_request", said)
    assert "k-123456789" not in run.stderr


@pytest.mark.parametrize("words, variable", [(["--api", "chat"], "OPENAI_API_KEY"), (["--api", "anthropic"], "ANTHROPIC_API_KEY"),
                                             (["--key-env", "NOT_THERE", "--endpoint", "http://localhost:1"], "NOT_THERE")])
def test_a_key_that_is_due_and_missing_is_named(words, variable):
    run = call("ask", "--model", "m", *words, stdin="?", **NO_KEYS)
    assert_refused(run, "model.refused_key", f"{variable} is not set", "--key-command")


@pytest.mark.parametrize("command, said", [("exit 3", "exit code 3"), ("true", "printed nothing"), ("printf 'a b-123456'", "blank")])
def test_a_key_command_that_gives_no_key_is_refused(command, said):
    run = call("ask", "--model", "m", "--key-command", command, "--endpoint", "http://localhost:1", stdin="?")
    assert_refused(run, "model.refused_key", said)
    assert "b-123456" not in run.stderr


# ---- TLS

@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate for 127.0.0.1 that no authority has signed."""
    top = tmp_path_factory.mktemp("tls")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=here", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", top / "key.pem", "-out", top / "cert.pem"], check=True, capture_output=True)
    return top


def test_a_certificate_is_verified_and_an_authority_of_ones_own_trusted(certificate):
    with serving(chat("yes"), tls=tls_of(certificate / "cert.pem", certificate / "key.pem")) as server:
        run = ask(server, "--key-env", "MINE", MINE="k-123456789")
        assert_refused(run, "model.unreachable", "not trusted", "self-signed", "SSL_CERT_FILE", exit_code=3)
        assert server.requests == []
        run = ask(server, SSL_CERT_FILE=str(certificate / "cert.pem"))
        assert (run.returncode, run.stdout) == (0, "yes\n"), run.stderr


def test_a_certificate_for_another_name_is_refused(certificate):
    with serving(chat("yes"), tls=tls_of(certificate / "cert.pem", certificate / "key.pem")) as server:
        run = call("ask", "--model", "m", "--endpoint", server.endpoint.replace("127.0.0.1", "localhost"), "--retries", 0, stdin="?",
                   SSL_CERT_FILE=str(certificate / "cert.pem"))
        assert_refused(run, "model.unreachable", "not trusted", exit_code=3)
        assert server.requests == []
