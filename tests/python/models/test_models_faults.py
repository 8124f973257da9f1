"""Endpoints that fail, are slow, or lie: each ends in one typed line that says what to do, in bounded time."""

import pytest

from kernelwright_cli import assert_refused, call
from model_server import (NO_KEYS, anthropic_events, ask, chat, chat_delta, chat_events, dripping, endless, events, no_http, reply,
                          reset, responses_events, serving, silent, stalling, then_cut)


def error(message="so it is", kind="an_error", code=None):
    return {"error": {"message": message, "type": kind, "code": code}}


def one_line(run):
    """Exactly one line, whatever the server said."""
    assert len(run.stderr.strip().splitlines()) == 1, run.stderr
    assert run.stdout == ""


# ---- what may go away by itself

FAILS = {"500": reply(500, error()), "529": reply(529, error(kind="overloaded_error")), "503 in HTML": reply(503, "<h1>busy</h1>", "text/html"),
         "429": reply(429, error(kind="rate_limit"), retry_after="0.02"), "429 in ms": reply(429, error(), retry_after_ms="5"),
         "408": reply(408), "409": reply(409), "reset": reset, "truncated stream": then_cut(chat_delta("for")),
         "stream without end": events(chat_delta("for")), "400 that asks for it": reply(400, error(), x_should_retry="true"),
         "overloaded in the stream": events(error(kind="overloaded_error")), "no HTTP": no_http}


@pytest.mark.parametrize("fault", FAILS)
def test_what_may_pass_is_asked_again(fault):
    with serving(FAILS[fault], FAILS[fault], chat("forty-two")) as server:
        run = ask(server)
    assert (run.returncode, run.stdout) == (0, "forty-two\n"), run.stderr
    assert len(server.requests) == 3


ENDS = {"500": "server", "529": "server", "503 in HTML": "server", "429": "rate_limited", "408": "timeout", "reset": "malformed",
        "truncated stream": "malformed", "stream without end": "malformed", "overloaded in the stream": "server", "no HTTP": "malformed"}


@pytest.mark.parametrize("fault, kind", ENDS.items())
def test_what_does_not_pass_ends_with_the_last_reason(fault, kind):
    with serving(FAILS[fault]) as server:
        run = ask(server, "--retries", 2)
    assert_refused(run, f"model.{kind}", server.endpoint, "(asked 3 times)", exit_code=3)
    one_line(run)
    assert len(server.requests) == 3


# ---- what does not

FINAL = {
    "401": (reply(401, error("your key k-12...")), "refused_key", "no key was sent", 2),
    "403": (reply(403, error()), "refused_key", "no key was sent", 2),
    "400": (reply(400, error("bad field")), "bad_request", "'bad field'", 2),
    "404": (reply(404, error("no such model")), "bad_request", "--model", 2),
    "413": (reply(413, error()), "bad_request", "too long", 2),
    "credit": (reply(429, error(code="credit_balance_exhausted")), "budget", "used up", 3),
    "quota": (reply(429, error(kind="insufficient_quota")), "budget", "used up", 3),
    "billing": (reply(402, error(kind="billing_error")), "budget", "used up", 3),
    "credit in the stream": (events(error(kind="billing_error")), "budget", "used up", 3),
    "told not to": (reply(500, error(), x_should_retry="false"), "server", "500", 3),
    "a long wait": (reply(429, error(), retry_after="3600"), "rate_limited", "try again in 3600 s", 3),
    "a long date": (reply(429, error(), retry_after="Fri, 31 Dec 2100 23:59:59 GMT"), "rate_limited", "try again in", 3),
    "redirect": (reply(307, location="https://elsewhere.example/v1"), "bad_request", "https://elsewhere.example/v1", 2),
    "HTML": (reply(200, "<html>Sign in</html>", "text/html"), "malformed", "'text/html'", 3),
    "no type": (reply(200, "{}", None), "malformed", "content type", 3),
    "empty": (reply(200, b""), "malformed", "not JSON", 3),
    "another JSON": (reply(200, {"answer": 42}), "malformed", "'choices'", 3),
    "a list": (reply(200, [1]), "malformed", "array", 3),
    "not JSON": (events("{"), "malformed", "not JSON", 3),
    "not UTF-8": (events(b'{"choices": [{"delta": {"content": "\xff\xfe"}}]}'), "malformed", "not UTF-8", 3),
    "half a character": (events(b'{"choices": [{"delta": {"content": "\\ud800"}}]}'), "malformed", "not JSON", 3),
    "a number for text": (events({"choices": [{"delta": {"content": 42}}]}), "malformed", "'content' is number", 3),
    "a text for choices": (events({"choices": "none"}), "malformed", "'choices' is string", 3),
    "tokens below 0": (events({"choices": [], "usage": {"prompt_tokens": -5}}), "malformed", "'prompt_tokens'", 3),
    "nothing said": (chat(), "malformed", "answers nothing", 3),
    "only thoughts": (chat(why="length"), "malformed", "before its first word", 3),
    "declined": (chat("I", why="content_filter"), "malformed", "declines", 3),
    "an error in the stream": (events(error("no GPU", "engine_error")), "server", "'no GPU'", 3),
}


@pytest.mark.parametrize("fault", FINAL)
def test_what_cannot_pass_ends_at_once(fault):
    answer, kind, said, exit_code = FINAL[fault]
    with serving(answer) as server:
        run = ask(server)
    assert_refused(run, f"model.{kind}", said, exit_code=exit_code)
    one_line(run)
    assert len(server.requests) == 1


OTHERS = {
    "responses: failed": ("responses", responses_events(status="failed", error={"code": "engine_error", "message": "no GPU"}), "server"),
    "responses: filtered": ("responses", responses_events("a", status="incomplete", incomplete_details={"reason": "content_filter"}), "malformed"),
    "responses: error": ("responses", [{"type": "error", "code": "engine_error", "message": "no GPU"}], "server"),
    "responses: refused": ("responses", [{"type": "response.refusal.delta", "delta": "no"}, *responses_events()], "malformed"),
    "anthropic: error": ("anthropic", [{"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}], "server"),
    "anthropic: refused": ("anthropic", anthropic_events("a", why="refusal"), "malformed"),
}


@pytest.mark.parametrize("fault", OTHERS)
def test_the_other_protocols_say_so_in_their_own_words(fault):
    api, stream, kind = OTHERS[fault]
    with serving(events(*stream)) as server:
        run = ask(server, api=api)
    assert_refused(run, f"model.{kind}", exit_code=3)
    one_line(run)
    assert len(server.requests) == 1


def test_a_refused_key_is_named_by_its_variable():
    with serving(reply(401, error())) as server:
        assert_refused(ask(server, "--key-env", "MINE", MINE="k-123456789"), "model.refused_key", "the key from MINE")


def test_a_redirect_gets_neither_the_key_nor_the_request():
    with serving(chat("yes")) as there, serving(reply(308, location="PLACE")) as here:
        here.replies = [reply(308, location=there.endpoint + "/v1/chat/completions")]
        run = ask(here, "--key-env", "MINE", MINE="k-123456789")
    assert_refused(run, "model.bad_request", there.endpoint)
    assert there.requests == []


# ---- what never ends

LIMITS = {
    "silent": (silent, ["--first-byte-seconds", "0.3"], "first byte of an answer did not come within 0.3 s"),
    "stalling": (stalling(chat_delta("for")), ["--idle-seconds", "0.3"], "next part of the answer did not come within 0.3 s"),
    "dripping": (dripping, ["--whole-seconds", "0.5"], "end of the answer did not come within 0.5 s"),
}


@pytest.mark.parametrize("fault", LIMITS)
def test_every_wait_has_its_limit(fault):
    answer, words, said = LIMITS[fault]
    with serving(answer) as server:
        run = ask(server, *words, "--retries", 0)
    assert_refused(run, "model.timeout", said, exit_code=3)
    one_line(run)


def test_an_endless_answer_is_cut_at_its_limit_of_bytes():
    with serving(endless(chat_delta("for" * 100))) as server:
        run = ask(server, "--most-bytes", "200000")
    assert_refused(run, "ask.cut", "limit", exit_code=3)
    assert 10_000 < len(run.stdout) < 400_000 and set(run.stdout) == set("for\n")


def test_nobody_there_is_said():
    with serving(silent) as server:
        endpoint = server.endpoint
    run = call("ask", "--model", "m", "--endpoint", endpoint, "--retries", 1, "--retry-wait", "0.01", stdin="?", **NO_KEYS)
    assert_refused(run, "model.unreachable", endpoint, "refused", "(asked 2 times)", exit_code=3)
    one_line(run)


# ---- budgets

def test_repetitions_count_as_calls():
    with serving(reply(500, error())) as server:
        run = ask(server, "--budget-calls", 2)
    assert_refused(run, "model.budget", "2 requests", "--budget-calls", exit_code=3)
    assert len(server.requests) == 2


def test_a_request_that_could_overrun_a_budget_is_not_sent():
    with serving(chat("yes")) as server:
        for words, said in ((["--budget-tokens", 1000], "--budget-tokens"),
                            (["--budget-dollars", "0.1", "--price-in", 3, "--price-out", 15], "--budget-dollars")):
            run = ask(server, *words)
            assert_refused(run, "model.budget", said, exit_code=3)
        assert server.requests == []
        assert ask(server, "--budget-tokens", 1000, "--most-tokens", 500).returncode == 0


def test_a_broken_answer_is_charged_what_came():
    """The first try costs 1000 tokens of text and its question; the second does not fit any more."""
    with serving(then_cut(chat_delta("abc" * 1000))) as server:
        run = ask(server, "--budget-tokens", 1500, "--most-tokens", 1000)
    assert_refused(run, "model.budget", "tokens are used", exit_code=3)
    assert len(server.requests) == 1


def test_dollars_are_counted_at_the_prices_given():
    with serving(chat("yes", tokens=(2_000_000, 1_000_000))) as server:
        run = ask(server, "--json", "--price-in", "3", "--price-out", "15")
    assert '"dollars":21.0' in run.stdout
