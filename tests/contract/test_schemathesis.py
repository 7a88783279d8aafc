"""Schemathesis with all its checks against the deployed server finds nothing, and most of what it sends is answered."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "contract"
LEAST_SHARE_ANSWERED = 0.4

RUNS = {
    "coverage": ("--phases", "examples,coverage"),
    "members": ("--phases", "coverage", "--mode", "negative", "--include-path-regex", "concurrency|cost"),
    "valid": ("--phases", "fuzzing", "--mode", "positive", "--max-examples", "90"),
    "invalid": ("--phases", "fuzzing", "--mode", "negative", "--max-examples", "25"),
}
"""The examples and the systematic cases of the schema; then random bodies and queries, valid and not. Where a body has a
rule of which members belong together, Schemathesis varies little else: ``members`` has such bodies without their rule,
whose invalid cases are as invalid."""
SIDE_BY_SIDE = (("coverage",), ("members", "valid", "invalid"))


class Found:
    """What the runs found, and what they sent."""

    def __init__(self) -> None:
        self.output: dict[str, str] = {}
        self.status: dict[str, int] = {}
        self.counts: Counter[tuple[str, str, str, str]] = Counter()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The service as it is deployed, and its log; a warning of numpy is a 500 here."""
    folder = tmp_path_factory.mktemp("contract")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    environment = os.environ | {
        "SIZING_BIND": address,
        "SIZING_STORE_PATH": str(folder / "store.sqlite"),
        "SIZING_LOG_LEVEL": "WARNING",
        "SIZING_WORKERS": "2",
        "TMPDIR": str(folder),
        "PYTHONWARNINGS": "error::RuntimeWarning",
    }
    log = folder / "server.log"
    command = [sys.executable, "-m", "gunicorn", "-c", "deploy/gunicorn.conf.py", "service.asgi:app"]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=sink, stderr=sink)
    try:
        until = time.monotonic() + 60
        while not _is_ready(address):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield f"http://{address}", log
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _is_ready(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{address}/health/ready", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def found(service: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Found:
    url, _ = service
    folder = tmp_path_factory.mktemp("schemathesis")
    document = folder / "openapi.json"
    with urllib.request.urlopen(f"{url}/openapi.json", timeout=10) as answer:  # noqa: S310 - the service under test
        document.write_bytes(answer.read())
    without_rules = folder / "without_rules.json"
    without_rules.write_text(json.dumps(_without_rules(json.loads(document.read_text()))))
    result = Found()

    def run(name: str) -> None:
        source = without_rules if name == "members" else document
        counts = folder / f"{name}.json"
        environment = os.environ | {"CONTRACT_SERVICE_URL": url, "CONTRACT_COUNTS": str(counts)}
        options = ["--config-file", str(FOLDER / "schemathesis.toml")]
        command = [sys.executable, "-m", "schemathesis.cli", *options, "run", str(source), "--url", url]
        command += ["--checks", "all", *RUNS[name]]
        ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        result.output[name], result.status[name] = ended.stdout + ended.stderr, ended.returncode
        if counts.exists():
            for label, method, mode, status, count in json.loads(counts.read_text()):
                result.counts[label, method, mode, status] += count

    with ThreadPoolExecutor(len(SIDE_BY_SIDE)) as threads:
        list(threads.map(lambda names: [run(name) for name in names], SIDE_BY_SIDE))
    return result


def _without_rules(document: dict[str, Any]) -> dict[str, Any]:
    for name in ("ConcurrencyRequest", "CostRequest"):
        schema = document["components"]["schemas"][name]
        assert schema.pop("anyOf", None) or schema.pop("oneOf", None), f"{name} has no rule any more"
    return document


@pytest.mark.parametrize("name", RUNS)
def test_schemathesis_finds_nothing(found: Found, name: str) -> None:
    assert found.status[name] == 0, found.output[name]


def test_the_service_logged_no_fault(found: Found, service: tuple[str, Path]) -> None:
    del found
    log = service[1].read_text().splitlines()
    assert not [line for line in log if "request failed" in line or "Traceback" in line]


def test_four_of_ten_cases_of_each_operation_are_answered(found: Found, capsys: pytest.CaptureFixture[str]) -> None:
    """Probes of methods that an operation does not have are counted apart: none of them could be answered."""
    document = json.loads((ROOT / "openapi" / "openapi.json").read_text())
    operations = {f"{method.upper()} {path}" for path, item in document["paths"].items() for method in item}
    shares: dict[str, float] = {}
    rows = [f"{'operation':34}{'valid':>7}{'invalid':>9}{'cases':>7}{'2xx':>7}{'share':>7}{'other methods':>15}"]
    for label in sorted(operations):
        own, valid, answered, other = 0, 0, 0, 0
        for (of, method, mode, status), count in found.counts.items():
            if of != label:
                continue
            if method != label.split()[0]:
                other += count
                continue
            own += count
            valid += count if mode != "negative" else 0
            answered += count if status.startswith("2") else 0
        shares[label] = answered / max(own, 1)
        rows.append(f"{label:34}{valid:7}{own - valid:9}{own:7}{answered:7}{shares[label]:7.0%}{other:15}")
    with capsys.disabled():
        print("", *rows, sep="\n")  # noqa: T201 - the report of the run
    assert min(shares.values()) >= LEAST_SHARE_ANSWERED, {of: f"{share:.0%}" for of, share in shares.items()}
