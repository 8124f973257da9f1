"""A server on 127.0.0.1 that answers as a test tells it to: rightly, slowly, wrongly, or not at all."""

import contextlib
import http.server
import json
import socket
import ssl
import struct
import threading

from kernelwright_cli import call


class Server(http.server.ThreadingHTTPServer):
    """The nth request gets the nth of `replies`, each a function of the handler; the last one repeats."""

    daemon_threads = True

    def __init__(self, replies, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.replies, self.requests, self.scheme = replies, [], "https" if tls else "http"
        self.lock, self.closing = threading.Lock(), threading.Event()

    @property
    def endpoint(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        """A client that hangs up, or trusts no certificate of ours, is what tests are about."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            n = len(self.server.requests)
            self.server.requests.append({"path": self.path, "headers": dict(self.headers.items()), "body": json.loads(body)})
        self.close_connection = True
        self.server.replies[min(n, len(self.server.replies) - 1)](self)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(*replies, tls=None):
    server = Server(replies, tls)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def tls_of(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


# ---- what a server may do

def reply(status, body=b"", kind="application/json", **headers):
    data = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()

    def send(handler):
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        if kind:
            handler.send_header("Content-Type", kind)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return send


def events(*data, cuts=None):
    """A stream of events, in chunks of `cuts` bytes each; an event is a JSON value, bytes or a text as it stands."""
    text = b"".join(b"data: " + (d if isinstance(d, bytes) else (d if isinstance(d, str) else json.dumps(d)).encode()) + b"\n\n"
                    for d in data)

    def send(handler):
        begin_stream(handler)
        for at in range(0, len(text), cuts or len(text) or 1):
            chunk(handler, text[at:at + (cuts or len(text))])
        handler.wfile.write(b"0\r\n\r\n")

    return send


def begin_stream(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()


def chunk(handler, data):
    handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def then_cut(*data):
    """The stream's connection closes in the middle of a chunk."""
    def send(handler):
        begin_stream(handler)
        for d in data:
            chunk(handler, b"data: " + json.dumps(d).encode() + b"\n\n")
        handler.wfile.write(b"ffff\r\ndata: {")

    return send


def endless(event):
    def send(handler):
        begin_stream(handler)
        with contextlib.suppress(OSError):
            while not handler.server.closing.is_set():
                chunk(handler, b"data: " + json.dumps(event).encode() + b"\n\n")

    return send


def silent(handler):
    handler.server.closing.wait(30)


def stalling(*data):
    def send(handler):
        begin_stream(handler)
        for d in data:
            chunk(handler, b"data: " + json.dumps(d).encode() + b"\n\n")
        handler.wfile.flush()
        handler.server.closing.wait(30)

    return send


def dripping(handler):
    """Always another byte, never an end."""
    begin_stream(handler)
    with contextlib.suppress(OSError):
        while not handler.server.closing.wait(0.02):
            chunk(handler, b":")


def reset(handler):
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def no_http(handler):
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


# ---- the three protocols, with a right answer

def chat_delta(text, model="tiny-1"):
    return {"model": model, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}


def chat_events(*texts, model="tiny-1", why="stop", tokens=(9, 2)):
    return [*(chat_delta(t, model) for t in texts),
            {"model": model, "choices": [{"index": 0, "delta": {}, "finish_reason": why}]},
            {"model": model, "choices": [], "usage": {"prompt_tokens": tokens[0], "completion_tokens": tokens[1]}}, "[DONE]"]


def chat(*texts, cuts=None, **more):
    return events(*chat_events(*texts, **more), cuts=cuts)


def responses_events(*texts, model="tiny-1", status="completed", **more):
    return [{"type": "response.created", "response": {"model": model}},
            *({"type": "response.output_text.delta", "delta": t} for t in texts),
            {"type": f"response.{status}", "response": {"model": model, "status": status, "error": None,
             "incomplete_details": None, "usage": {"input_tokens": 9, "output_tokens": 2}, **more}}]


def anthropic_events(*texts, model="tiny-1", why="end_turn"):
    return [{"type": "message_start", "message": {"model": model, "usage": {"input_tokens": 9, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}, {"type": "ping"},
            {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "hm"}},
            *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": t}} for t in texts),
            {"type": "message_delta", "delta": {"stop_reason": why}, "usage": {"output_tokens": 2}}, {"type": "message_stop"}]


# ---- asking

NO_KEYS = {"OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": ""}


def ask(server, *words, question="What is 6 * 7?", api="chat", timeout=60, **environment):
    """`ask` with waits made short; what follows in `words` wins."""
    short = {"--retry-wait": "0.01", "--connect-seconds": "5", "--first-byte-seconds": "20", "--idle-seconds": "20"}
    given = [str(w) for w in words]
    for name, value in short.items():
        if name not in given:
            given += [name, value]
    return call("ask", "--api", api, "--model", "tiny", "--endpoint", server.endpoint, *given, stdin=question,
                timeout=timeout, **{**NO_KEYS, **environment})
