"""Ids outside the catalog through a hub, seen from the endpoints: off by default, never for what is no ``org/name``."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from litestar.testing import TestClient

from service.app import create_app
from service.settings import Settings

if TYPE_CHECKING:
    from conftest import HubStandIn

NAME = "acme/brand-new-9b"
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14_336,
    "vocab_size": 128_256,
    "max_position_embeddings": 16_384,
    "torch_dtype": "bfloat16",
}
PARAMETERS = 8_030_261_248
TRAFFIC = {"requests_per_second": 1, "input_tokens": 500, "output_tokens": 100}


@pytest.fixture
def known(hub: "HubStandIn") -> "HubStandIn":
    hub.serve(
        NAME,
        config=json.dumps(CONFIG).encode(),
        elements={"BF16": PARAMETERS},
        files={"config.json": 700, "model.safetensors": 2 * PARAMETERS},
    )
    return hub


@pytest.fixture
def client(known: "HubStandIn", tmp_path: Path) -> Iterator[TestClient[Any]]:
    settings = Settings(store_path=tmp_path / "store.sqlite", hub_enabled=True, hub_endpoint=known.endpoint)
    with TestClient(create_app(settings), raise_server_exceptions=False) as made:
        yield made


def budget(client: TestClient[Any], model: object) -> Any:  # noqa: ANN401 - a response
    return client.post("/v1/vram-budgets", json={"model": model, "gpu": "h100-sxm-80gb", "weights": "bf16"})


def test_an_id_outside_the_catalog_is_resolved_once(client: TestClient[Any], known: "HubStandIn") -> None:
    first = budget(client, NAME)
    assert first.status_code == 200
    answer = first.json()
    assert answer["verdict"] == "starts"
    checkpoint = {name: size for name, size in answer["weights"].items() if name != "rotary_tables"}
    assert sum(checkpoint.values()) == pytest.approx(2 * PARAMETERS, rel=1e-3)
    assert answer["kv_cache"]["at_tokens"] == 16_384
    [assumed] = [one for one in answer["assumptions"] if one["field"] == "/model"]
    assert assumed["value"] == NAME
    assert known.commit in assumed["why"]
    asked = len(known.requests)
    assert budget(client, NAME).content == first.content
    assert len(known.requests) == asked, "the second answer comes from the cache"


def test_a_hub_model_is_recommended_and_replayed(client: TestClient[Any]) -> None:
    answer = client.post("/v1/recommendations", json={"model": NAME, "traffic": TRAFFIC, "limit": 2}).json()
    assert len(answer["recommendations"]) == 2
    for option in answer["recommendations"]:
        again = client.post("/v1/vram-budgets", json=option["replay"]["vram_budget"]).json()
        again.pop("provenance")
        assert again == option["vram"]


@pytest.mark.parametrize("spelled", [{"id": NAME}, {"id": NAME, "parameters": PARAMETERS}])
def test_an_object_may_name_it(client: TestClient[Any], spelled: dict[str, object]) -> None:
    assert budget(client, spelled).json()["kv_cache"] == budget(client, NAME).json()["kv_cache"]


def test_catalog_ids_and_own_configs_ask_no_hub(client: TestClient[Any], known: "HubStandIn") -> None:
    for model in (
        "meta-llama/Llama-3.1-8B-Instruct",
        "llama-3.1-8b",
        {"id": "acme/other", "config": CONFIG},
        {"parameters": 7_000_000_000},
    ):
        assert budget(client, model).status_code == 200
    assert known.requests == []


@pytest.mark.parametrize(
    "model", ["gpt-of-mine", "../../api/whoami", "acme/../brand", "acme/x?y=1", "https://example.com/a", "a/b/c"]
)
def test_what_is_no_hub_id_never_leaves_the_service(client: TestClient[Any], known: "HubStandIn", model: str) -> None:
    response = budget(client, model)
    assert response.status_code == 422
    assert response.json()["errors"][0]["code"] == "unknown_id"
    assert known.requests == []


def test_an_id_that_the_hub_does_not_know_is_422_with_the_closest(client: TestClient[Any]) -> None:
    response = budget(client, "meta-lama/Lama-9-900B")
    assert response.status_code == 422
    [error] = response.json()["errors"]
    assert (error["code"], error["pointer"]) == ("unknown_id", "/model")
    assert error["suggestions"]


def test_a_config_that_cannot_be_sized_is_422(client: TestClient[Any], known: "HubStandIn") -> None:
    known.serve("acme/strange", config=b'{"model_type": "strange"}', elements={"BF16": 10})
    response = budget(client, "acme/strange")
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/model"


def test_look_ups_are_off_by_default(known: "HubStandIn", tmp_path: Path) -> None:
    settings = Settings(store_path=tmp_path / "store.sqlite", hub_endpoint=known.endpoint)
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        assert budget(client, NAME).status_code == 422
    assert known.requests == []
