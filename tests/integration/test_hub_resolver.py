"""Models looked up through ``huggingface_hub`` on a stand-in that answers its requests as the hub does."""

import asyncio
import gzip
import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from service.hub import HubFailure, HubModel, HubResolver
from service.store import StoreUnavailable
from service.store.memory import MemoryStore

if TYPE_CHECKING:
    from conftest import HubRepository, HubStandIn

CONFIG = {"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32, "rope": {"factor": 8.0}}
LLAMA = "meta-llama/Llama-3.1-8B"
NOW = 1_800_000_000.0


class DeadStore(MemoryStore):
    """A store that never answers; the fault, not the part, is of the test."""

    async def cache_get(self, key: str) -> bytes | None:
        raise StoreUnavailable(key)

    async def cache_put(self, key: str, payload: bytes, ttl_s: float) -> None:
        raise StoreUnavailable(key, payload, ttl_s)


def serve_llama(hub: "HubStandIn", name: str = LLAMA) -> "HubRepository":
    return hub.serve(
        name,
        config=json.dumps(CONFIG).encode(),
        elements={"BF16": 8_030_261_248},
        files={"config.json": 855, "model-00001-of-00001.safetensors": 16_060_556_000, "README.md": 9},
    )


def on_hub(  # noqa: PLR0913 - the resolver's own settings
    hub: "HubStandIn",
    scenario: Callable[[HubResolver], Awaitable[None]],
    *,
    store: MemoryStore | None = None,
    endpoint: str | None = None,
    token: str | None = None,
    limit_s: float = 3.0,
    clock: Callable[[], float] = lambda: NOW,
) -> None:
    async def main() -> None:
        resolver = HubResolver(
            store or MemoryStore(), endpoint=endpoint or hub.endpoint, token=token, limit_s=limit_s, clock=clock
        )
        try:
            await scenario(resolver)
        finally:
            await resolver.aclose()

    asyncio.run(main())


def answered(hub: "HubStandIn", model_id: str = LLAMA, **options: float) -> HubModel | HubFailure:
    answers: list[HubModel | HubFailure] = []

    async def scenario(resolver: HubResolver) -> None:
        answers.append(await resolver.resolve(model_id))

    on_hub(hub, scenario, **options)  # type: ignore[arg-type]
    return answers[0]


def test_a_model_comes_with_config_and_counts(hub: "HubStandIn") -> None:
    serve_llama(hub)
    assert answered(hub) == HubModel(
        id=LLAMA,
        revision=hub.commit,
        config=CONFIG,
        parameters=8_030_261_248,
        elements_by_dtype={"BF16": 8_030_261_248},
        checkpoint_bytes=16_060_556_000,
        fetched_at_s=NOW,
    )
    assert hub.paths == [f"/{LLAMA}/resolve/main/config.json", f"/api/models/{LLAMA}"]


def test_without_a_description_the_header_of_the_file_tells_the_counts(
    hub: "HubStandIn", safetensors_file: bytes
) -> None:
    serve_llama(hub)
    hub.repositories[LLAMA].described = False
    hub.repositories[LLAMA].bodies["model.safetensors"] = safetensors_file
    answer = answered(hub)
    assert isinstance(answer, HubModel)
    assert answer.elements_by_dtype == {"BF16": 6, "F32": 4}
    assert (answer.parameters, answer.checkpoint_bytes) == (10, 28)
    assert dict(hub.requests[-1][1])["range"].startswith("bytes=0-")


def test_without_a_description_the_index_of_the_shards_tells_the_counts(hub: "HubStandIn") -> None:
    serve_llama(hub)
    hub.repositories[LLAMA].described = False
    hub.repositories[LLAMA].bodies["model.safetensors.index.json"] = b'{"metadata": {"total_size": 1234}}'
    answer = answered(hub)
    assert isinstance(answer, HubModel)
    assert (answer.parameters, answer.checkpoint_bytes) == (None, 1234)


def test_weights_are_never_read(hub: "HubStandIn") -> None:
    serve_llama(hub)
    hub.repositories[LLAMA].described = False
    hub.repositories[LLAMA].bodies["model.safetensors"] = bytes(9 * 1024**2)  # a server that ignores ranges
    answer = answered(hub)
    assert isinstance(answer, HubModel)
    assert answer.parameters is None


@pytest.mark.parametrize(
    ("repository", "kind"),
    [
        (None, "not_found"),
        ({"config": None, "status": 401, "error_code": "GatedRepo"}, "gated"),
        ({"config": None, "status": 403, "error_code": "GatedRepo"}, "gated"),
        ({"config": None, "status": 404, "error_code": "RepoNotFound"}, "not_found"),
        ({"config": None}, "bad_config"),
        ({"config": b"<html>"}, "bad_config"),
        ({"config": b'{"a":' * 50_000}, "bad_config"),
        ({"config": b'{"a": "' + b"x" * 1024**2 + b'"}'}, "too_large"),
        ({"config": gzip.compress(bytes(10**7)), "encoding": "gzip"}, "unreachable"),
        ({"config": None, "status": 500}, "unreachable"),
        ({"config": None, "status": 429}, "unreachable"),
    ],
)
def test_each_failure_is_a_value_of_its_kind(
    hub: "HubStandIn", repository: dict[str, object] | None, kind: str
) -> None:
    if repository is not None:
        hub.serve(LLAMA, **repository)
    answer = answered(hub)
    assert isinstance(answer, HubFailure)
    assert answer.kind == kind
    assert answer.message.code == f"hub_{kind}"
    assert answer.message.params == {"id": LLAMA}


@pytest.mark.parametrize("model_id", ["gpt2", "../../api/whoami", "a/b/../c", "a/b?x", "", "a" * 10_000 + "/b"])
def test_an_id_that_is_none_never_leaves_the_service(hub: "HubStandIn", model_id: str) -> None:
    answer = answered(hub, model_id)
    assert isinstance(answer, HubFailure)
    assert answer.kind == "refused"
    assert len(str(answer.message.params["id"])) <= 200
    assert hub.requests == []


def test_a_hub_that_is_not_there_fails_fast_and_is_left_alone(hub: "HubStandIn") -> None:
    async def scenario(resolver: HubResolver) -> None:
        for n in range(40):
            answer = await resolver.resolve(f"org/name{n}")
            assert isinstance(answer, HubFailure)
            assert answer.kind == "unreachable"

    begun = time.monotonic()
    on_hub(hub, scenario, endpoint="http://127.0.0.1:1")
    assert time.monotonic() - begun < 2.0


@pytest.mark.parametrize(("chunks", "pause_s"), [(1, 5.0), (40, 0.2)], ids=["silent", "dripping"])
def test_a_slow_hub_is_given_up_in_time_and_the_loop_runs_on(hub: "HubStandIn", chunks: int, pause_s: float) -> None:
    serve_llama(hub)
    hub.repositories[LLAMA].chunks, hub.repositories[LLAMA].pause_s = chunks, pause_s

    async def scenario(resolver: HubResolver) -> None:
        await resolver.resolve("org/absent")  # imports the library
        longest_s = 0.0

        async def tick() -> None:
            nonlocal longest_s
            while True:
                begun = time.monotonic()
                await asyncio.sleep(0.01)
                longest_s = max(longest_s, time.monotonic() - begun)

        ticking = asyncio.create_task(tick())
        begun = time.monotonic()
        answer = await resolver.resolve(LLAMA)
        assert time.monotonic() - begun < 1.5
        ticking.cancel()
        assert isinstance(answer, HubFailure)
        assert answer.kind == "unreachable"
        assert longest_s < 0.35, "the event loop was held up"

    on_hub(hub, scenario, limit_s=0.5)
    end = time.monotonic() + 2.0
    while any(thread.name.startswith("hub") for thread in threading.enumerate()):
        assert time.monotonic() < end, "a thread outlived its lookup"
        time.sleep(0.02)


def test_redirects_within_the_hub_are_followed_and_others_are_not(hub: "HubStandIn") -> None:
    serve_llama(hub, "new/name")
    serve_llama(hub, "old/name")
    hub.repositories["old/name"].moved_to = "/new/name/resolve/main/config.json"
    assert isinstance(answered(hub, "old/name"), HubModel)
    elsewhere: list[str] = []
    with_listener = threading.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        elsewhere.append((await reader.readline()).decode())
        writer.close()

    async def scenario(resolver: HubResolver) -> None:
        server = await asyncio.start_server(listen, "127.0.0.1", 0)
        with_listener.set()
        port = server.sockets[0].getsockname()[1]
        hub.repositories["old/name"].moved_to = f"http://127.0.0.1:{port}/latest/meta-data"
        answer = await resolver.resolve("old/name")
        assert isinstance(answer, HubFailure)
        assert answer.kind == "unreachable"
        server.close()
        await server.wait_closed()

    on_hub(hub, scenario)
    assert with_listener.is_set()
    assert elsewhere == [], "the hub sent the service to another host"


def test_many_who_ask_for_one_model_share_one_lookup(hub: "HubStandIn") -> None:
    serve_llama(hub)
    hub.repositories[LLAMA].pause_s = 0.1

    async def scenario(resolver: HubResolver) -> None:
        impatient = asyncio.create_task(resolver.resolve(LLAMA))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(resolver.resolve(LLAMA)) for _ in range(30)]
        await asyncio.sleep(0)
        impatient.cancel()
        answers = await asyncio.gather(*waiting, resolver.resolve(LLAMA.upper()))
        assert {answer.id for answer in answers} == {LLAMA}
        assert await resolver.resolve(LLAMA) is answers[0]

    on_hub(hub, scenario)
    assert len(hub.requests) == 2


def test_workers_share_answers_until_they_are_old(hub: "HubStandIn") -> None:
    serve_llama(hub)
    store = MemoryStore()
    now = [NOW]
    seen: list[HubModel | HubFailure] = []

    async def scenario(resolver: HubResolver) -> None:
        seen.extend([await resolver.resolve(LLAMA), await resolver.resolve("org/absent")])

    def new_worker(endpoint: str | None = None) -> int:
        before = len(hub.requests)
        on_hub(hub, scenario, store=store, endpoint=endpoint, clock=lambda: now[0])
        return len(hub.requests) - before

    assert new_worker() == 3
    assert new_worker() == 0
    now[0] += 700.0
    assert new_worker() == 1, "a failure is forgotten sooner than a model"
    now[0] += 7 * 3600.0
    assert new_worker() == 3
    assert {answer.id for answer in seen} == {LLAMA, "org/absent"}


def test_an_old_answer_serves_while_the_hub_is_away(hub: "HubStandIn") -> None:
    serve_llama(hub)
    store = MemoryStore()
    now = [NOW]

    async def scenario(resolver: HubResolver) -> None:
        answer = await resolver.resolve(LLAMA)
        assert isinstance(answer, HubModel)
        assert answer.fetched_at_s == NOW

    on_hub(hub, scenario, store=store, clock=lambda: now[0])
    now[0] += 86400.0
    hub.repositories[LLAMA].status = 503
    hub.requests.clear()
    on_hub(hub, scenario, store=store, clock=lambda: now[0])
    assert hub.requests, "an old answer was taken for a fresh one"


def test_a_dead_store_does_not_keep_models_away(hub: "HubStandIn") -> None:
    serve_llama(hub)

    async def scenario(resolver: HubResolver) -> None:
        assert isinstance(await resolver.resolve(LLAMA), HubModel)

    on_hub(hub, scenario, store=DeadStore())


def test_the_token_goes_to_the_hub_and_nowhere_else(hub: "HubStandIn", caplog: pytest.LogCaptureFixture) -> None:
    serve_llama(hub)
    token = "hf_" + "s" * 34
    store = MemoryStore()

    async def scenario(resolver: HubResolver) -> None:
        await resolver.resolve(LLAMA)
        await resolver.resolve("org/absent")
        assert token not in repr(resolver)

    with caplog.at_level(logging.DEBUG):
        on_hub(hub, scenario, token=token, store=store)
    assert {headers["authorization"] for _, headers in hub.requests} == {f"Bearer {token}"}
    assert token not in caplog.text
    assert token not in repr(vars(store))
    hub.requests.clear()
    on_hub(hub, _resolve_llama, store=store)
    assert hub.requests, "an answer that a token opened served a service without one"
    assert all("authorization" not in headers for _, headers in hub.requests)


async def _resolve_llama(resolver: HubResolver) -> None:
    await resolver.resolve(LLAMA)


@pytest.mark.parametrize(
    "endpoint", ["", "hub.example", "ftp://hub.example", "https://user:pw@hub.example", "https://"]
)
def test_an_endpoint_that_is_no_address_is_a_mistake_of_the_settings(endpoint: str) -> None:
    with pytest.raises(ValueError, match="endpoint"):
        HubResolver(MemoryStore(), endpoint=endpoint)


def test_a_service_without_a_hub_does_not_load_the_client_library() -> None:
    program = (
        "import sys, service.hub, service.store\n"
        "service.hub.HubResolver(service.store.open_store(None, None), endpoint='https://hub.example')\n"
        "heavy = {'huggingface_hub', 'httpx2', 'redis'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=20.0)
