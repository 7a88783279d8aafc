"""Settings: defaults, values, and all mistakes at once."""

from pathlib import Path

import pytest

from service.settings import SettingsError, read_settings


def test_the_defaults_need_nothing_and_reach_nothing() -> None:
    settings = read_settings({})
    assert settings.redis_url is None
    assert settings.hub_enabled is False
    assert settings.workers == 1
    assert settings.log_level == "INFO"
    assert settings.bind is None
    assert settings.store_path.name == "store.sqlite"
    assert read_settings({"XDG_STATE_HOME": "/state"}).store_path == Path("/state/llm-sizing/store.sqlite")


def test_values_are_read() -> None:
    settings = read_settings(
        {
            "REDIS_URL": "rediss://cache:6380/1",
            "SIZING_STORE_PATH": "/data/x.sqlite",
            "HF_ENDPOINT": "https://mirror.example/",
            "SIZING_HUB_ENABLED": "True",
            "SIZING_LOG_LEVEL": "warning",
            "SIZING_WORKERS": "4",
            "SIZING_BIND": "0.0.0.0:80",
        }
    )
    assert settings.redis_url == "rediss://cache:6380/1"
    assert settings.store_path == Path("/data/x.sqlite")
    assert settings.hub_endpoint == "https://mirror.example"
    assert settings.hub_enabled is True
    assert (settings.log_level, settings.workers, settings.bind) == ("WARNING", 4, "0.0.0.0:80")


def test_empty_values_count_as_unset() -> None:
    names = ("REDIS_URL", "SIZING_STORE_PATH", "HF_ENDPOINT", "SIZING_HUB_ENABLED", "SIZING_WORKERS", "SIZING_BIND")
    assert read_settings(dict.fromkeys(names, " ")) == read_settings({})


def test_all_mistakes_are_told_together() -> None:
    wrong = {
        "REDIS_URL": "http://cache",
        "HF_ENDPOINT": "mirror",
        "SIZING_HUB_ENABLED": "maybe",
        "SIZING_LOG_LEVEL": "loud",
        "SIZING_WORKERS": "0",
    }
    with pytest.raises(SettingsError) as told:
        read_settings(wrong)
    assert all(name in str(told.value) for name in wrong)
    assert len(str(told.value).splitlines()) == len(wrong)
