"""The load runner against live servers, with a handful of requests; no figure of time is judged here."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from loadtests.budgets import judge
from loadtests.load import closed_loop, open_loop
from loadtests.scenario import catalogs_of, draw

ROOT = Path(__file__).resolve().parents[2]


def test_a_quick_run_measures_everything_that_budgets_ask_for(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    command = [sys.executable, "loadtests/run.py", "--quick", "--json", str(out)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "vram-budgets" in ended.stdout
    result = json.loads(out.read_bytes())
    for phase in (result["recommendations"], result["mixed_open_loop"], result["vram_budgets"]["open_loop"]):
        assert phase["statuses"] == {"200": phase["requests"]}
    assert result["vram_budgets"]["distinct_bodies"] == result["plan"]["bodies"]
    assert result["vram_budgets"]["rate_over_noop"] > 0
    assert result["memory"]["resident_mb"] > 10
    assert len(judge(result)) == len(result["budgets"])


def test_a_broken_budget_is_told(tmp_path: Path) -> None:
    budgets = tmp_path / "budgets.toml"
    budgets.write_text(
        '[[budget]]\nfigure = "a.b"\nwhat = "x"\nat_most = 2\n'
        '[[budget]]\nfigure = "c"\nwhat = "y"\nat_least = 0.5\naim = true\n'
    )
    kept = judge({"a": {"b": 2.0}, "c": 0.4}, budgets)
    broken = judge({"a": {"b": 2.1}, "c": 0.5}, budgets)
    assert [row.verdict for row in kept] == ["ok", "missed"]
    assert [row.verdict for row in broken] == ["BROKEN", "met"]


def test_scenarios_draw_distinct_bodies_that_are_the_same_each_time() -> None:
    ids = {path: [f"id-{number}" for number in range(50)] for path in catalogs_of("vram-budgets", "recommendations")}
    for name in ("vram-budgets", "recommendations"):
        drawn = draw(name, 1000, ids)
        assert len({one.body for one in drawn}) == 1000
        assert drawn == draw(name, 1000, ids)
        assert b"$" not in b"".join(one.body for one in drawn)


def test_a_scenario_with_too_few_bodies_is_refused(tmp_path: Path) -> None:
    request = {"path": "/x", "share": 1, "body": {"a": {"$one_of": [1, {"$integer": [2, 3]}]}}}
    narrow = tmp_path / "narrow"
    narrow.with_suffix(".json").write_text(json.dumps({"seed": 1, "requests": [request]}))
    assert {one.body for one in draw(str(narrow), 3, {})} == {b'{"a":1}', b'{"a":2}', b'{"a":3}'}
    with pytest.raises(ValueError, match="only 3 of 4 distinct"):
        draw(str(narrow), 4, {})


def test_waiting_behind_a_slow_answer_counts_from_the_scheduled_time() -> None:
    """A server that answers one at a time, and the first only after 0.3 s."""

    async def measure() -> tuple[float, float]:
        turn = asyncio.Lock()
        slow = [0.3]
        connections: list[asyncio.Task[None] | None] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.append(asyncio.current_task())
            while await reader.readline():
                await reader.readuntil(b"\r\n\r\n")
                async with turn:
                    await asyncio.sleep(slow.pop() if slow else 0.0)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        requests = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"] * 20
        paced = await open_loop(port, requests, per_second=200.0, seed=1)
        slow.append(0.3)
        back_to_back = await closed_loop(port, requests, connections=1)
        await asyncio.gather(*(task for task in connections if task))
        server.close()
        await server.wait_closed()
        return paced.percentile_ms(50), back_to_back.percentile_ms(50)

    open_ms, closed_ms = asyncio.run(measure())
    assert open_ms > 100  # most were due while the first held the server
    assert closed_ms < 100  # a closed loop does not see it: nineteen of twenty never waited
