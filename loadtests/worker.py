"""gunicorn with one worker, started for a run and stopped after it; what the kernel counts of that worker (Linux)."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from loadtests.client import LOOPBACK

ROOT = Path(__file__).resolve().parents[1]
LONGEST_START_S = 30.0
_POLL_S = 0.005
_NANO = 1e-9
_OURS = ("SIZING_", "REDIS_URL", "HF_", "PROMETHEUS_MULTIPROC_DIR")
"""Settings of the caller's shell, which would make runs differ."""


class ServerError(Exception):
    """The server did not start, or died; with the end of its log."""


class Worker:
    """An application behind the deployed server settings, on a loopback port and a store of its own."""

    def __init__(self, application: str) -> None:
        """Start it and wait until it is ready."""
        self._folder = tempfile.TemporaryDirectory(prefix="sizing-load-")
        folder = Path(self._folder.name)
        self._log = folder / "server.log"
        with socket.create_server((LOOPBACK, 0)) as probe:
            self.port: int = probe.getsockname()[1]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        environment |= {"SIZING_BIND": f"{LOOPBACK}:{self.port}", "SIZING_WORKERS": "1", "TMPDIR": str(folder)}
        environment |= {"SIZING_STORE_PATH": str(folder / "store.sqlite")}
        command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", application]
        started_at = time.perf_counter()
        with self._log.open("wb") as log:
            self._master = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)  # noqa: S603
        while not self._ready():
            if self._master.poll() is not None or time.perf_counter() > started_at + LONGEST_START_S:
                self.stop()
            time.sleep(_POLL_S)
        self.ready_s = time.perf_counter() - started_at
        """From the command to the first ready answer."""
        children = Path(f"/proc/{self._master.pid}/task/{self._master.pid}/children").read_text(encoding="ascii")
        self._pid = int(children.split()[0])

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop it."""
        self.stop()

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=1.0)
        try:
            connection.request("GET", "/health/ready")
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """End it. Raises ``ServerError`` unless it was running and ends well."""
        self._master.send_signal(signal.SIGTERM)
        try:
            code = self._master.wait(15.0)
        except subprocess.TimeoutExpired:
            self._master.kill()
            code = self._master.wait()
        log = self._log.read_text(encoding="utf-8", errors="replace")
        self._folder.cleanup()
        if code:
            message = f"the server ended with {code}:\n{log[-2000:]}"
            raise ServerError(message)

    def cpu_s(self) -> float:
        """Processor time that the worker has used, over all its threads."""
        tasks = Path(f"/proc/{self._pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) * _NANO

    def resident_bytes(self, *, peak: bool = False) -> int:
        """Memory of the worker that is resident now, or was at most."""
        status = Path(f"/proc/{self._pid}/status").read_text(encoding="ascii")
        found = re.search(rf"^{'VmHWM' if peak else 'VmRSS'}:\s+(\d+) kB$", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else 0
