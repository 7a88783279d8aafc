"""Which ids may leave the service."""

import pytest
from huggingface_hub.utils import validate_repo_id
from hypothesis import given, settings
from hypothesis import strategies as st

from service.hub import is_hub_id


@pytest.mark.parametrize(
    "text",
    ["meta-llama/Llama-3.1-8B", "a/b", "01-ai/Yi-6B", "org_/_name", "x" * 96 + "/" + "y" * 96, "Qwen/Qwen2.5-VL-3B"],
)
def test_ids_of_the_hub_pass(text: str) -> None:
    assert is_hub_id(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpt2",
        "/",
        "a/",
        "/b",
        "a/b/c",
        "../etc",
        "a/..",
        "a/b..c",
        "a/./b",
        "a--b/c",
        "a/b.git",
        "a/b.GIT",
        "-a/b",
        "a-/b",
        "a/.b",
        "a/b.",
        "a /b",
        "a/b\n",
        "a/b?x=1",
        "a/b#c",
        "a%2F/b",
        "a/b\x00",
        "ä/b",
        "a/文",
        "http://host/a",
        "user@host/a",
        "a:b/c",
        "a\\b/c",
        "x" * 97 + "/b",
        "a/" + "y" * 97,
    ],
)
def test_all_else_is_refused(text: str) -> None:
    assert not is_hub_id(text)


@settings(derandomize=True, database=None)
@given(st.from_regex(r"[A-Za-z0-9_.\-]{0,6}/[A-Za-z0-9_.\-]{0,6}", fullmatch=True) | st.text(max_size=12))
def test_what_passes_also_passes_the_client_library(text: str) -> None:
    if is_hub_id(text):
        validate_repo_id(text)
        assert text.count("/") == 1
