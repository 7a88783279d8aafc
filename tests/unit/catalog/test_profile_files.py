"""The profile files: complete, plausible, with their sources; every accelerator finds a class."""

from pathlib import Path

import msgspec
import pytest

from service.catalog.accelerators import load_accelerators
from service.catalog.profiles import load_profiles
from service.catalog.quantizations import load_quantizations
from service.domain.calibration import Profile, card_class, engine_host, kernel_kind, profile_for, release, stacked
from service.domain.errors import CatalogError

DATA = Path("service/catalog/data")
PROFILES = load_profiles(DATA / "profiles")
CARDS = load_accelerators(DATA / "accelerators")
FORMATS = load_quantizations(DATA / "quantizations.json")


def test_every_row_names_its_sources_and_its_date() -> None:
    rows = (*PROFILES.classes, *PROFILES.links, *PROFILES.engines)
    assert all(row.sources and row.as_of for row in rows)
    assert all(spread.as_of and spread.note for spread in PROFILES.spreads)


def test_ids_are_unique() -> None:
    ids = [known.id for known in PROFILES.classes]
    assert len(ids) == len(set(ids))
    bands = [(host.engine, host.from_version) for host in PROFILES.engines]
    assert len(bands) == len(set(bands))


def test_cards_named_by_a_class_exist() -> None:
    assert {name for known in PROFILES.classes for name in known.accelerators} <= set(CARDS)


def test_every_card_and_format_has_a_positive_profile() -> None:
    for card in CARDS.values():
        for name in ("bf16", "fp8", "awq-int4", "nvfp4", "gguf-q4-k-m"):
            profile = profile_for(card, FORMATS[name], "vllm", "0.19.0", PROFILES)
            shown = msgspec.structs.asdict(profile)
            assert all(value > 0.0 for field, value in shown.items() if field != "calibrated"), (card.id, name)


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ("h100-sxm-80gb", "nvidia-hopper"),
        ("h100-pcie-80gb", "nvidia-hopper-pcie"),
        ("h100-sxm-80gb/1g.10gb", "nvidia-hopper"),
        ("h20-141gb", "nvidia-h20"),
        ("a100-sxm-80gb", "nvidia-ampere-hbm"),
        ("rtx-a6000-48gb", "nvidia-ampere"),
        ("l40s-48gb", "nvidia-ada-workstation"),
        ("rtx-4090-24gb", "nvidia-ada"),
        ("b200-sxm-180gb", "nvidia-blackwell-hbm"),
        ("rtx-5090-32gb", "nvidia-blackwell-gddr"),
        ("mi300x-192gb", "amd-cdna3"),
        ("tpu-v6e-32gb", "other"),
    ],
)
def test_class_of_a_card(card: str, expected: str) -> None:
    assert card_class(CARDS[card], PROFILES).id == expected


@pytest.mark.parametrize(
    ("card", "weights", "engine", "expected"),
    [
        ("h100-sxm-80gb", "bf16", "vllm", "16bit"),
        ("h100-sxm-80gb", "fp8", "vllm", "fp8"),
        ("a100-sxm-80gb", "fp8", "vllm", "w8a16"),
        ("h100-sxm-80gb", "awq-int4", "vllm", "w4a16"),
        ("h100-sxm-80gb", "mxfp4", "vllm", "w4a16"),
        ("b200-sxm-180gb", "nvfp4", "tensorrt-llm", "fp4"),
        ("rtx-4090-24gb", "gguf-q4-k-m", "llama.cpp", "gguf4"),
        ("rtx-4090-24gb", "gguf-f16", "llama.cpp", "gguf16"),
    ],
)
def test_kernels_follow_format_card_and_engine(card: str, weights: str, engine: str, expected: str) -> None:
    assert kernel_kind(CARDS[card], FORMATS[weights], engine) == expected


def test_engine_bands_by_version() -> None:
    assert engine_host("vllm", "0.7.3", PROFILES).from_version == "0"
    assert engine_host("vllm", "0.8.5.post1", PROFILES).from_version == "0.8"
    assert engine_host("vllm", "0.19.0rc1", PROFILES).from_version == "0.10"
    assert release("v0.19.0rc1") == (0, 19, 0)
    assert release("nightly") == ()


def test_borrowed_classes_have_wider_intervals() -> None:
    measured = profile_for(CARDS["h100-sxm-80gb"], FORMATS["bf16"], "vllm", "0.19.0", PROFILES)
    borrowed = profile_for(CARDS["tpu-v6e-32gb"], FORMATS["bf16"], "vllm", "0.19.0", PROFILES)
    assert measured.calibrated == 1.0
    assert borrowed.calibrated == 0.0
    assert borrowed.tpot_spread > measured.tpot_spread
    assert borrowed.throughput_spread > measured.throughput_spread


def test_stacked_profiles_are_arrays_in_order() -> None:
    names = ("h100-sxm-80gb", "l40s-48gb")
    single = [profile_for(CARDS[name], FORMATS["bf16"], "vllm", "0.19.0", PROFILES) for name in names]
    both = stacked(single)
    for field in msgspec.structs.fields(Profile):
        column = getattr(both, field.name)
        assert [float(value) for value in column] == [getattr(profile, field.name) for profile in single]


def test_a_share_above_what_physics_allows_is_refused(tmp_path: Path) -> None:
    for source in (DATA / "profiles").glob("*.json"):
        (tmp_path / source.name).write_bytes(source.read_bytes())
    broken = msgspec.json.decode((tmp_path / "cards.json").read_bytes())
    broken[0]["kv_read_share"] = 1.9
    (tmp_path / "cards.json").write_bytes(msgspec.json.encode(broken))
    with pytest.raises(CatalogError, match=r"cards\.json"):
        load_profiles(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"cards\.json"):
        load_profiles(tmp_path)
