"""Load the service within bounds, on this machine only, and hold what is measured against ``budgets.toml``.

    python loadtests/run.py [--quick] [--json FILE]

Starts the service and the no-op application (``noop.py``), each behind gunicorn with one worker, sends both the same
bodies by turns, prints a table and ends with 1 where a budget breaks. See README.md.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import uvloop

if __name__ == "__main__":
    # Python looks for modules beside a script; these are found from the root, as in the tests.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from loadtests.budgets import judge, table
from loadtests.measures import FULL, QUICK, RefusedError, measure
from loadtests.worker import ServerError


def _facts(result: dict[str, Any]) -> str:
    """The absolute figures in a few lines."""
    budgets, found, mix = result["vram_budgets"], result["recommendations"], result["mixed_open_loop"]
    paced, memory, start = budgets["open_loop"], result["memory"], result["start"]
    wild = budgets["anywhere"]
    return f"""\
vram-budgets     {budgets["requests_per_second"]:.0f}/s, worker CPU {budgets["worker_cpu_us"]:.0f} us each; \
{budgets["starting_share"]:.0%} of the deployments start
  no-op          {budgets["noop_requests_per_second"]:.0f}/s, worker CPU {budgets["noop_worker_cpu_us"]:.0f} us each
  anywhere       {wild["rate_over_noop"]:.2f} of the no-op's rate; {wild["starting_share"]:.0%} start
  open loop      {paced["scheduled_per_second"]:.0f}/s: {_percentiles(paced)} from the scheduled time
recommendations  {_percentiles(found)}; no-op p50 {found["noop_p50_ms"]:.3f} ms
mixed open loop  {mix["scheduled_per_second"]:.0f}/s: {_percentiles(mix)} from the scheduled time
start to ready   {start["ready_s"]:.2f} s, no-op {start["noop_ready_s"]:.2f} s
worker memory    {memory["at_start_mb"]:.0f} MB at start, {memory["resident_mb"]:.0f} MB after the load, \
{memory["peak_mb"]:.0f} MB at most; no-op {memory["noop_resident_mb"]:.0f} MB
"""


def _percentiles(phase: dict[str, Any]) -> str:
    return f"p50 {phase['p50_ms']:.2f} ms, p90 {phase['p90_ms']:.2f} ms, p99 {phase['p99_ms']:.2f} ms"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print, judge; the exit status."""
    parser = argparse.ArgumentParser(description="Bounded load on loopback, held against budgets.toml.")
    parser.add_argument("--quick", action="store_true", help="a few requests: shows that it works, judges nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the whole result")
    options = parser.parse_args(arguments)
    try:
        result = uvloop.run(measure(QUICK if options.quick else FULL))
    except (RefusedError, ServerError, OSError) as error:
        sys.stderr.write(f"the run was given up: {error}\n")
        return 1
    judged = judge(result)
    result["budgets"] = [row._asdict() for row in judged]
    if options.json:
        options.json.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))
    sys.stdout.write(f"{_facts(result)}\n{table(judged)}\n")
    broken = any(not (row.kept or row.aim) for row in judged)
    return int(broken and not options.quick)


if __name__ == "__main__":
    sys.exit(main())
