"""The catalogs over HTTP: pages, filters, tags, pinned revisions, and single entries by any of their names."""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from service.catalog.snapshot import Snapshot

if TYPE_CHECKING:
    from conftest import Api

LISTS = ("models", "gpus", "quantizations", "engines", "providers", "offers")


def everything(api: "Api", name: str, **params: str | int) -> list[dict[str, Any]]:
    """All items of a list, page by page."""
    items: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        page = api.get(f"/v1/{name}", **params, **cursor)
        items += page["items"]
        if page["next_cursor"] is None:
            assert len(items) == page["total"]
            return items
        cursor = {"cursor": page["next_cursor"]}


@pytest.mark.parametrize("name", LISTS)
def test_pages_add_up_in_one_order(api: "Api", name: str) -> None:
    first = api.get(f"/v1/{name}")
    assert first.keys() >= {"items", "total", "next_cursor"}
    assert len(first["items"]) == min(first["total"], 50)
    assert (first["next_cursor"] is None) == (first["total"] <= 50)
    ids = [item["id"] for item in everything(api, name, limit=37)]
    assert len(set(ids)) == len(ids) == first["total"]
    assert ids == [item["id"] for item in everything(api, name, limit=500)]
    if name != "quantizations":
        assert ids == sorted(ids)


@pytest.mark.parametrize("name", LISTS)
def test_a_current_copy_is_not_sent_again(api: "Api", name: str) -> None:
    for path in (
        f"/v1/{name}",
        f"/v1/{name}?limit=3",
        f"/v1/{name}/{api.get(f'/v1/{name}', limit=1)['items'][0]['id']}",
    ):
        first = api.client.get(path)
        assert first.status_code == 200
        again = api.client.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        other = api.client.get(path, headers={"If-None-Match": '"other"'})
        assert other.content == first.content


@pytest.mark.parametrize("name", LISTS)
def test_each_entry_is_found_by_its_id_raw_and_escaped(api: "Api", name: str) -> None:
    items = everything(api, name, limit=500)
    for item in items[:: max(len(items) // 12, 1)]:
        raw, escaped = f"/v1/{name}/{item['id']}", f"/v1/{name}/{quote(item['id'], safe='')}"
        found = api.get(raw)
        assert found["provenance"]["catalog_revision"]
        assert {key: value for key, value in found.items() if key != "provenance"} == item
        assert api.get(escaped) == found


@pytest.mark.parametrize("name", LISTS)
def test_revisions_are_pinned(api: "Api", name: str) -> None:
    page = api.get(f"/v1/{name}", limit=1)
    revision = page["provenance"]["catalog_revision"]
    assert api.get(f"/v1/{name}", limit=1, catalog_revision=revision) == page
    entry = f"/v1/{name}/{page['items'][0]['id']}"
    assert api.get(entry, catalog_revision=revision) == api.get(entry)
    for path in (f"/v1/{name}", entry):
        gone = api.client.get(path, params={"catalog_revision": "0000000000000000"})
        assert gone.status_code == 410
        assert gone.headers["content-type"] == "application/problem+json"
        assert gone.json()["errors"][0]["code"] == "revision_gone"


@pytest.mark.parametrize("endpoint", ["vram-budgets", "recommendations"])
def test_answers_are_pinned(api: "Api", endpoint: str) -> None:
    body: dict[str, Any] = {"model": "meta-llama/Llama-3.1-8B-Instruct"}
    if endpoint == "vram-budgets":
        body["gpu"] = "l4-24gb"
    else:
        body["traffic"] = {"requests_per_second": 1, "input_tokens": 100, "output_tokens": 100}
    answer = api.ask(endpoint, body)
    revision = answer["provenance"]["catalog_revision"]
    assert api.ask(endpoint, body, catalog_revision=revision) == answer
    assert api.post(endpoint, body, catalog_revision="gone").status_code == 410


@pytest.mark.parametrize(
    ("name", "unknown", "suggested"),
    [
        ("models", "Qwen/Qwen9.9-7Z", "Qwen/"),
        ("gpus", "h100-sxm-8gb-xx", "h100"),
        ("quantizations", "awq-int5", "awq-int4"),
        ("engines", "vlm", "vllm"),
        ("providers", "runpot", "runpod"),
    ],
)
def test_unknown_ids_of_a_path_are_404_with_the_closest(api: "Api", name: str, unknown: str, suggested: str) -> None:
    response = api.client.get(f"/v1/{name}/{unknown}")
    assert response.status_code == 404
    [error] = response.json()["errors"]
    assert error["code"] == "unknown_id"
    assert any(suggested in one for one in error["suggestions"])


def test_an_unknown_offer_is_404(api: "Api") -> None:
    known = api.get("/v1/offers", limit=1, provider="runpod")["items"][0]["id"]
    response = api.client.get(f"/v1/offers/{known}x")
    assert response.status_code == 404
    assert known in response.json()["errors"][0]["suggestions"]


TRAFFIC = {"requests_per_second": 1, "input_tokens": 100, "output_tokens": 100}
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("endpoint", "body", "pointer", "suggested"),
    [
        ("vram-budgets", {"model": "meta-llama/Llama-3.1-9B", "gpu": "l4-24gb"}, "/model", "meta-llama/Llama-3.1-8B"),
        ("vram-budgets", {"model": LLAMA, "gpu": "h101-sxm"}, "/gpu", "h100"),
        ("vram-budgets", {"model": LLAMA, "gpu": "l4-24gb", "weights": "fp9"}, "/weights", "fp8"),
        ("vram-budgets", {"model": LLAMA, "gpu": "l4-24gb", "kv_cache": "fp9"}, "/kv_cache", "fp8"),
        ("recommendations", {"model": "llama-9.9", "traffic": TRAFFIC}, "/model", ""),
        (
            "recommendations",
            {"model": LLAMA, "traffic": TRAFFIC, "constraints": {"gpus": ["h100-sxm-80gb", "h101"]}},
            "/constraints/gpus/1",
            "h100",
        ),
        (
            "recommendations",
            {"model": LLAMA, "traffic": TRAFFIC, "constraints": {"providers": ["runpot"]}},
            "/constraints/providers/0",
            "runpod",
        ),
        ("cost-projections", {"offer": "runpod/nothing/any/on_demand"}, "/offer", "runpod/"),
    ],
)
def test_unknown_ids_of_a_body_are_422_with_the_closest(
    api: "Api", endpoint: str, body: dict[str, Any], pointer: str, suggested: str
) -> None:
    response = api.post(endpoint, body)
    assert response.status_code == 422
    [error] = response.json()["errors"]
    assert (error["code"], error["pointer"]) == ("unknown_id", pointer)
    assert any(suggested in one for one in error["suggestions"])


def test_all_unknown_ids_of_a_body_are_told_together(api: "Api") -> None:
    body = {"model": "no-such-model-at-all", "gpu": "no-such-gpu", "engine": {"speculative": {"draft_model": "nope"}}}
    response = api.post("vram-budgets", body)
    assert response.status_code == 422
    pointers = {error["pointer"] for error in response.json()["errors"]}
    assert pointers == {"/model", "/gpu", "/engine/speculative/draft_model"}


def test_filters_of_models(api: "Api") -> None:
    assert all("qwen" in item["id"].lower() for item in everything(api, "models", q="QWEN"))
    kinds = {item["kind"] for item in everything(api, "models", limit=500)}
    for kind in kinds:
        assert {item["kind"] for item in everything(api, "models", kind=kind)} == {kind}
    llamas = everything(api, "models", model_type="llama")
    assert len(llamas) >= 20
    assert {item["architecture"]["model_type"] for item in llamas} == {"llama"}


def test_filters_of_gpus(api: "Api", snapshot: Snapshot) -> None:
    whole = everything(api, "gpus", limit=500)
    assert len(whole) >= 90
    assert all("/" not in item["id"] for item in whole)
    assert len(everything(api, "gpus", slices="true")) == len(snapshot.accelerators)
    assert {item["vendor"] for item in everything(api, "gpus", vendor="amd")} == {"AMD"}
    large = everything(api, "gpus", min_memory_gib=100)
    assert 5 <= len(large) < len(whole)
    assert all(item["memory_bytes"] >= 100 * 2**30 for item in large)
    hopper = everything(api, "gpus", q="h100")
    assert {"h100-sxm-80gb", "h100-pcie-80gb"} <= {item["id"] for item in hopper}


def test_filters_of_offers(api: "Api") -> None:
    for params in (
        {"provider": "RunPod"},
        {"gpu": "H100 SXM"},
        {"term": "spot"},
        {"tenancy": "marketplace"},
        {"country": "us"},
    ):
        found = everything(api, "offers", limit=500, **params)
        assert found, params
    assert {o["provider"] for o in everything(api, "offers", provider="RunPod")} == {"runpod"}
    assert {o["gpu"] for o in everything(api, "offers", gpu="H100 SXM")} == {"h100-sxm-80gb"}
    assert {o["term"] for o in everything(api, "offers", term="spot")} == {"spot"}
    cheap = everything(api, "offers", limit=500, max_usd_per_gpu_hour=0.5)
    assert cheap
    assert all(offer["price_usd_per_gpu_hour"] <= 0.5 for offer in cheap)
    for params in ({"term": "weekly"}, {"provider": "runpot"}, {"gpu": "h101"}, {"nothing": "1"}):
        assert api.client.get("/v1/offers", params=params).status_code == 422, params


def test_slices_are_found_by_card_and_profile(api: "Api") -> None:
    whole, part = api.get("/v1/gpus/h100-sxm-80gb"), api.get("/v1/gpus/h100-sxm-80gb/1g.10gb")
    assert part["id"] == "h100-sxm-80gb/1g.10gb"
    assert 0 < part["usable_memory_bytes"] < whole["usable_memory_bytes"] / 6
    assert "1g.10gb" in {mig["name"] for mig in whole["mig"]}


def test_names_find_their_entry(api: "Api") -> None:
    assert api.get("/v1/models/META-LLAMA/llama-3.1-8b-instruct")["id"] == LLAMA
    assert api.get("/v1/gpus/NVIDIA H100 80GB HBM3")["id"] == "h100-sxm-80gb"
    assert api.get("/v1/quantizations/fp8_e4m3")["id"] == "fp8"
    assert api.get("/v1/providers/Cherry Servers")["id"] == "cherry-servers"
    assert api.get("/v1/engines/vLLM")["id"] == "vllm"
