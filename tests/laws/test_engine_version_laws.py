"""Every engine version of the catalog can be searched, over cards whose defaults differ, as the single endpoints answer."""

from typing import TYPE_CHECKING, Any

import pytest

from service.catalog.snapshot import load_snapshot

if TYPE_CHECKING:
    from conftest import Api

VERSIONS = [(name, row.version) for name, table in load_snapshot().engines.items() for row in table.file.versions]
CARDS = ["t4-16gb", "v100-sxm-32gb", "a100-sxm-80gb", "h100-sxm-80gb", "mi300x-192gb"]
"""In vLLM the first two, and the last in some versions, run an older engine that does not cut prompts into chunks."""
TRAFFIC: dict[str, Any] = {"requests_per_second": 2.0, "input_tokens": 500, "output_tokens": 100}


@pytest.mark.parametrize(("engine", "version"), VERSIONS)
def test_a_search_over_cards_of_all_kinds_is_the_single_endpoints_answer(api: "Api", engine: str, version: str) -> None:
    asked = {"name": engine, "version": version}
    body = {"model": "Qwen/Qwen2.5-7B-Instruct", "traffic": TRAFFIC, "weights": "fp16", "engine": asked, "limit": 50}
    everything = api.ask("recommendations", body)
    some = api.ask("recommendations", body | {"constraints": {"gpus": CARDS}})
    assert everything["recommendations"]
    seen = set()
    for option in some["recommendations"]:
        if option["gpu"] in seen:
            continue
        seen.add(option["gpu"])
        single = api.ask("performance-estimates", option["replay"]["performance_estimate"])
        del single["provenance"]
        assert single == option["performance"], option["gpu"]
    assert seen
