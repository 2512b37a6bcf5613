"""An OpenAI-compatible server on loopback that answers from a script, and misbehaves as told.

For each query text the scripted faults are served first, one a request; then the right answer, if there is one.
It reads the query out of the conversation as a model would, so a mixed-up request gets a mixed-up answer.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from lcse_plugins.parsing.llm.schema import encode, reply_of
from lcse_plugins.parsing.result import Parse
from lcse_plugins.query import Concept, Query

TEXT = "an umbrella and no person"
TREE: Query = Concept("umbrella") & ~Concept("person")
Read = Callable[[Any, str], Coroutine[Any, Any, Parse]]
JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Send:
    """A whole HTTP response."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=lambda: JSON)


@dataclass(frozen=True)
class Hang:
    """Send nothing for so long, then break off."""

    seconds: float


@dataclass(frozen=True)
class BreakOff:
    """Promise a long body, send a little, close."""


Fault = Send | Hang | BreakOff


def completion(content: Any, *, finish: str = "stop", refusal: str | None = None) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "refusal": refusal}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "finish_reason": finish, "message": message, "logprobs": None}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def tool_call(name: str, arguments: str) -> dict[str, Any]:
    reply = completion(None, finish="tool_calls")
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    reply["choices"][0]["message"]["tool_calls"] = [call]
    return reply


def says(content: Any, **more: Any) -> Send:
    return Send(body=json.dumps(completion(content, **more)).encode())


def status(code: int, message: str = "scripted", **headers: str) -> Send:
    body = json.dumps({"error": {"message": message, "type": "error", "code": "error"}}).encode()
    return Send(code, body, {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}})


class ScriptedServer:
    """The script, and what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.asked: Counter[str] = Counter()
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        self.connections = 0
        self.delay = 0.0
        self._lock = threading.Lock()

    def knows(self, answers: Mapping[str, Query]) -> None:
        self.answers.update((text, encode(reply_of(query))) for text, query in answers.items())

    def fails(self, text: str, faults: Iterable[Fault]) -> None:
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
        if tools := request.get("tools"):
            return Send(body=json.dumps(tool_call(tools[0]["function"]["name"], self.answers[text])).encode())
        return says(self.answers[text])


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

    def setup(self) -> None:
        super().setup()
        self.script.connections += 1

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.script.keys.add(self.headers.get("authorization", ""))
        time.sleep(self.script.delay)
        try:
            self._serve(self.script.reply(request))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up first, as it should

    def _serve(self, reply: Fault) -> None:
        match reply:
            case Send(code, body, headers):
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            case Hang(seconds):
                time.sleep(seconds)
                self.close_connection = True
            case BreakOff():
                self.send_response(200)
                self.send_header("content-length", "1000")
                self.end_headers()
                self.wfile.write(b'{"choices": [')
                self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # a client that leaves is no news
            super().handle_error(request, client_address)


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
