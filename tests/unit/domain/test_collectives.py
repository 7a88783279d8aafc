"""All-reduce against AIConfigurator's measured tables (custom kernels, bf16), and the exchanges around it."""

from pathlib import Path

import pytest

from service.catalog.accelerators import load_accelerators
from service.catalog.profiles import load_profiles
from service.catalog.quantizations import load_quantizations
from service.domain.assembly import card_of
from service.domain.calibration import profile_for
from service.domain.collectives import all_reduce, all_reduce_s, hop_s_per_row
from service.domain.deployment import Layout
from service.domain.numeric import as_float

DATA = Path("service/catalog/data")
CARDS = load_accelerators(DATA / "accelerators")
BF16 = load_quantizations(DATA / "quantizations.json")["bf16"]
PROFILES = load_profiles(DATA / "profiles")
MIB = 1024.0 * 1024.0


def seconds(card: str, ranks: float, message_bytes: float) -> float:
    accelerator = CARDS[card]
    profile = profile_for(accelerator, BF16, "vllm", "0.19.0", PROFILES)
    terms = all_reduce(Layout(tensor=ranks), card_of(accelerator, BF16), profile)
    return as_float(all_reduce_s(terms, message_bytes))


@pytest.mark.parametrize(
    ("card", "ranks", "mib", "measured_us"),
    [
        ("h100-sxm-80gb", 2, 2, 9.4),
        ("h100-sxm-80gb", 8, 2, 35.5),
        ("h100-sxm-80gb", 8, 128, 575.5),
        ("b200-sxm-180gb", 4, 32, 123.1),
        ("a100-sxm-80gb", 4, 32, 291.4),
        ("rtx-pro-6000-blackwell-server-96gb", 2, 8, 244.7),
        ("rtx-pro-6000-blackwell-server-96gb", 8, 32, 2575.7),
    ],
)
def test_all_reduce_is_near_the_measured_time(card: str, ranks: float, mib: float, measured_us: float) -> None:
    assert seconds(card, ranks, mib * MIB) * 1e6 == pytest.approx(measured_us, rel=0.6)


def test_a_single_rank_reduces_nothing() -> None:
    assert seconds("h100-sxm-80gb", 1, 64 * MIB) == 0.0


def test_pcie_is_many_times_slower_than_nvlink() -> None:
    assert seconds("l40s-48gb", 8, 2 * MIB) > 10.0 * seconds("h100-sxm-80gb", 8, 2 * MIB)


def test_a_card_without_a_stated_link_still_has_a_finite_time() -> None:
    assert 0.0 < seconds("apple-m3-max", 2, MIB) < 1.0


def test_only_pipelines_hop() -> None:
    accelerator = CARDS["h100-sxm-80gb"]
    profile = profile_for(accelerator, BF16, "vllm", "0.19.0", PROFILES)
    card = card_of(accelerator, BF16)
    assert hop_s_per_row(8192, Layout(), card, profile) == 0.0
    assert as_float(hop_s_per_row(8192, Layout(pipeline=2.0), card, profile)) > 0.0
