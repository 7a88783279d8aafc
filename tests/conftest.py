"""The whole service in process, as clients see it, and the packaged catalogs that it answers from."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from litestar.testing import TestClient

from service.app import create_app
from service.catalog.snapshot import Snapshot, load_snapshot
from service.settings import Settings

EVALUATED_ON = "2026-08-01"
"""Day of all requests of the tests, so that ages do not change with the day they run on."""


class Api:
    """Requests to one running application, dated; a body given to ``ask`` must be answered with 200."""

    def __init__(self, client: TestClient[Any]) -> None:
        self.client = client

    def post(self, endpoint: str, body: dict[str, Any], **params: str) -> Any:  # noqa: ANN401 - a response
        return self.client.post(f"/v1/{endpoint}", json={"evaluated_on": EVALUATED_ON, **body}, params=params)

    def ask(self, endpoint: str, body: dict[str, Any], **params: str) -> dict[str, Any]:
        response = self.post(endpoint, body, **params)
        assert response.status_code == 200, f"{body}: {response.text}"
        answer: dict[str, Any] = response.json()
        return answer

    def get(self, path: str, **params: str | int) -> dict[str, Any]:
        response = self.client.get(path, params=params)
        assert response.status_code == 200, f"{path}: {response.text}"
        answer: dict[str, Any] = response.json()
        return answer


@pytest.fixture(scope="session")
def snapshot() -> Snapshot:
    return load_snapshot()


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    logging.getLogger("httpx").setLevel(logging.WARNING)
    settings = Settings(store_path=tmp_path_factory.mktemp("store") / "store.sqlite")
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield Api(client)
