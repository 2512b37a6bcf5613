"""An OpenAI-compatible server on loopback that answers from a script, and misbehaves as told.

For each query text the scripted faults are served first, one a request; then the right answer, if there is one.
It reads the query out of the conversation as a model would, so a mixed-up request gets a mixed-up answer.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lcse_plugins.parsing.llm.schema import encode, reply_of
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Concept, Query

TEXT = "an umbrella and no person"
TREE: Query = Concept("umbrella") & ~Concept("person")
Read = Callable[[Any, str], Coroutine[Any, Any, Parse]]


@dataclass(frozen=True)
class Fault:
    """An HTTP response, after a wait; with `cut` less of it than was promised."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    cut: int = 0


BREAK_OFF = Fault(body=b'{"choices": [', cut=1000)


def says(content: Any, *, finish: str = "stop", refusal: str | None = None, **more: Any) -> Fault:
    message = {"role": "assistant", "content": content, "refusal": refusal, **more}
    choice = {"index": 0, "finish_reason": finish, "message": message}
    told = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted", "choices": [choice]}
    return Fault(body=json.dumps(told).encode())


def status(code: int, message: str = "scripted", **headers: str) -> Fault:
    body = json.dumps({"error": {"message": message}}).encode()
    return Fault(code, body, {name.replace("_", "-"): value for name, value in headers.items()})


class ScriptedServer:
    """The script, and what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.asked: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.delay = 0.0
        self._lock = threading.Lock()

    def knows(self, answers: Mapping[str, Query]) -> None:
        self.answers.update((text, encode(reply_of(query))) for text, query in answers.items())

    def fails(self, text: str, *faults: Fault) -> None:
        self.faults[text].extend(faults)

    def reply(self, request: dict[str, Any]) -> Fault:
        text = asked_about(request["messages"])
        with self._lock:
            self.requests.append(request)
            self.asked[text] += 1
            if self.faults[text]:
                return self.faults[text].popleft()
        if text not in self.answers:
            return status(400, f"no script for {text!r}")
        if not (tools := request.get("tools")):
            return says(self.answers[text])
        function = {"name": tools[0]["function"]["name"], "arguments": self.answers[text]}
        calls = [{"id": "call_1", "type": "function", "function": function}]
        return says(None, finish="tool_calls", tool_calls=calls)


def asked_about(messages: list[dict[str, Any]]) -> str:
    """The query of a conversation: the JSON string behind the last `Query: `."""
    content = messages[-1]["content"]
    if isinstance(content, list):
        content = "".join(part.get("text", "") for part in content)
    behind = content.removeprefix("Query: ") if content.startswith("Query: ") else content.rsplit("Query: ", 1)[1]
    text, _ = json.JSONDecoder().raw_decode(behind)
    return str(text)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes; waiting for an acknowledgement costs 40 ms
    script: ScriptedServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.script.keys.add(self.headers.get("authorization", ""))
        reply = self.script.reply(request)
        time.sleep(self.script.delay + reply.wait)
        with suppress(ConnectionError):  # the client gave up first, as it should
            self.send_response(reply.status)
            length = str(len(reply.body) + reply.cut)
            for name, value in {"content-type": "application/json", "content-length": length, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)
        self.close_connection = bool(reply.cut or reply.wait)

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that leaves is no news; whatever else went wrong, its test will say


@contextmanager
def serving(script: ScriptedServer) -> Iterator[str]:
    """Serve the script; the value is the base URL."""
    handler: Callable[..., BaseHTTPRequestHandler] = type("Handler", (_Handler,), {"script": script})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
