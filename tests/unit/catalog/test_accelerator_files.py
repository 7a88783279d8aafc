"""The accelerator files: complete, unambiguous, plausible and sourced."""

from collections import Counter, defaultdict
from pathlib import Path
from statistics import median

import msgspec
import pytest

import service.catalog
from service.catalog.accelerators import SHARED_FILE, CardFile, CardRow, Shared, load_accelerators
from service.catalog.gpu_name_words import spell
from service.domain.accelerator import Accelerator
from service.domain.errors import CatalogError
from service.domain.units import GIB, MIB

FOLDER = Path(service.catalog.__file__).parent / "data" / "accelerators"
ACCELERATORS = load_accelerators(FOLDER)
CARDS = [a for a in ACCELERATORS.values() if "/" not in a.id]
SLICES = [a for a in ACCELERATORS.values() if "/" in a.id]
SHARED = msgspec.json.decode((FOLDER / SHARED_FILE).read_bytes(), type=Shared)
ROWS: list[CardRow] = [
    row
    for path in sorted(FOLDER.glob("*.json"))
    if path.name != SHARED_FILE
    for row in msgspec.json.decode(path.read_bytes(), type=CardFile).accelerators
]

DRIVER_MIB = {  # nvidia-smi, rocm-smi
    "t4-16gb": 15360,
    "l4-24gb": 23034,
    "a10g-24gb": 23028,
    "l40s-48gb": 46068,
    "rtx-4090-24gb": 24564,
    "rtx-5090-32gb": 32607,
    "a100-sxm-80gb": 81920,
    "h100-sxm-80gb": 81559,
    "h200-sxm-141gb": 143771,
    "b200-sxm-180gb": 183359,
    "gb200-186gb": 189471,
    "b300-sxm-270gb": 275040,
    "gb300-278gb": 284208,
    "rtx-pro-6000-blackwell-server-96gb": 97887,
    "mi300x-192gb": 196592,
}
TORCH_GIB = {
    "h100-sxm-80gb": 79.18,
    "a100-sxm-80gb": 79.25,
    "a100-pcie-40gb": 39.38,
    "l4-24gb": 22.03,
    "rtx-3090-24gb": 23.58,
    "h200-sxm-141gb": 139.72,
    "mi300x-192gb": 191.45,
    "b200-sxm-180gb": 178.35,
    "rtx-pro-6000-blackwell-maxq-96gb": 94.97,
}


def test_there_are_enough_cards_and_slices() -> None:
    assert len(CARDS) >= 150
    assert len(SLICES) >= 100


@pytest.mark.parametrize(("id_", "mib"), DRIVER_MIB.items())
def test_memory_is_what_the_driver_reports(id_: str, mib: int) -> None:
    assert ACCELERATORS[id_].memory_bytes == mib * MIB
    assert ACCELERATORS[id_].memory_basis == "reported"


@pytest.mark.parametrize(("id_", "gib"), TORCH_GIB.items())
def test_usable_memory_is_what_torch_prints(id_: str, gib: float) -> None:
    assert ACCELERATORS[id_].usable_memory_bytes == round(gib * GIB)


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_a_card_is_plausible_and_sourced(card: Accelerator) -> None:
    # Reported memory lies between 3 % below the label in decimal GB and the label in binary GB.
    assert 0.97 * card.memory_label_gb * 1e9 <= card.memory_bytes <= 1.01 * card.memory_label_gb * GIB
    lowest_share = 0.74 if card.vendor == "Apple" else 0.92
    assert lowest_share <= card.usable_memory_bytes / card.memory_bytes <= 1.0
    assert 60 <= card.memory_bandwidth_gb_per_s <= 10_000
    assert card.memory_bandwidth_gb_per_s * 1e9 / card.memory_bytes < 130  # reads its memory at most 130 times a second
    assert 1 <= card.max_gpus_per_node <= 16
    assert 0 <= card.interconnect.gb_per_s_per_direction <= 1000
    assert (card.interconnect.kind == "none") == (
        card.interconnect.gb_per_s_per_direction == 0 and "link" not in card.unverified
    )
    assert (card.compute_capability is not None) == (card.vendor == "NVIDIA")
    assert card.launch_year is not None
    assert 2014 <= card.launch_year <= 2026
    assert card.sources
    assert all(source and not source.startswith("@") for source in card.sources)
    assert len(card.as_of) == len("2026-12-01")


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.id)
def test_peaks_of_a_card_hang_together(card: Accelerator) -> None:
    peaks = card.dense_tflops
    assert all(0.5 <= peak <= 20_000 for peak in peaks.values())
    if {"fp16", "bf16"} <= peaks.keys():
        assert peaks["bf16"] in (peaks["fp16"], peaks["fp16"] / 2)  # MI100 runs bf16 at half rate
    if {"fp8", "bf16"} <= peaks.keys():
        assert peaks["fp8"] / peaks["bf16"] == pytest.approx(2.0, rel=0.03) or card.id in {
            "gaudi3-128gb",
            "tpu-v5p-95gb",
            "tpu-v6e-32gb",
        }
    if {"fp4", "fp8"} <= peaks.keys():
        assert 1.9 <= peaks["fp4"] / peaks["fp8"] <= 4.1
    if card.compute_capability is not None:
        assert ("bf16" in peaks) <= (card.compute_capability >= 8.0)
        assert ("fp8" in peaks) <= (card.compute_capability >= 8.9)
        assert ("fp4" in peaks) <= (card.compute_capability >= 10.0)
    if card.memory_bandwidth_gb_per_s and "bf16" in peaks and "Jetson" not in card.id:
        assert 20 <= peaks["bf16"] * 1e12 / (card.memory_bandwidth_gb_per_s * 1e9) <= 1000  # FLOPs per byte


def test_traps_are_avoided() -> None:
    assert ACCELERATORS["b200-sxm-180gb"].memory_bandwidth_gb_per_s == 7700
    assert ACCELERATORS["mi300x-192gb"].memory_bandwidth_gb_per_s == 5300
    assert ACCELERATORS["mi325x-256gb"].memory_label_gb == 256
    assert ACCELERATORS["l40s-48gb"].dense_tflops["fp8"] == 733
    assert ACCELERATORS["a10g-24gb"].dense_tflops["bf16"] < 0.6 * ACCELERATORS["a10-24gb"].dense_tflops["bf16"]
    assert (
        ACCELERATORS["b300-sxm-270gb"].dense_tflops["int8"] < ACCELERATORS["b200-sxm-180gb"].dense_tflops["int8"] / 20
    )
    assert "bf16" not in ACCELERATORS["t4-16gb"].dense_tflops


def test_names_belong_to_one_card_or_are_shared() -> None:
    own = Counter(spell(name) for card in CARDS for name in {spell(n): n for n in (card.id, *card.aliases)}.values())
    assert [name for name, cards in own.items() if cards > 1] == []
    shared: dict[str, list[str]] = defaultdict(list)
    for card in CARDS:
        for name in card.ambiguous_aliases:
            shared[spell(name)].append(card.id)
    assert {name: ids for name, ids in shared.items() if len(ids) < 2} == {}
    own_names = {name.lower() for card in CARDS for name in (card.id, *card.aliases)}
    assert own_names & {name.lower() for card in CARDS for name in card.ambiguous_aliases} == set()


def test_memory_shares_are_the_medians_of_the_prints() -> None:
    rows = defaultdict(list)
    for row in ROWS:
        rows[row.memory_class].append(row)
    assert rows.keys() == SHARED.memory_classes.keys()
    for name, memory_class in SHARED.memory_classes.items():
        printed = [row for row in rows[name] if row.memory_mib]
        labels = [row.memory_mib / (row.memory_label_gb * 1024) for row in printed if row.memory_mib]
        usable = [row.usable_gib * 1024 / row.memory_mib for row in printed if row.usable_gib and row.memory_mib]
        assert (len(labels), len(usable)) == (memory_class.label_prints, memory_class.usable_prints)
        assert bool(memory_class.basis) == (not labels or not usable)
        if labels:
            assert memory_class.label_share == pytest.approx(median(labels), abs=5e-5)
        if usable:
            assert memory_class.usable_share == pytest.approx(median(usable), abs=5e-5)


def test_shared_texts_and_tables_are_all_used() -> None:
    used = {text[1:].partition(" ")[0] for row in ROWS for text in (*row.sources, *row.notes) if text.startswith("@")}
    assert used == SHARED.texts.keys()
    assert {row.mig for row in ROWS if row.mig} == SHARED.mig_sets.keys()


@pytest.mark.parametrize("card", [card for card in CARDS if card.mig], ids=lambda card: card.id)
def test_mig_slices_share_out_the_card(card: Accelerator) -> None:
    for profile in card.mig:
        piece = ACCELERATORS[f"{card.id}/{profile.name}"]
        assert profile.max_instances * profile.memory_bytes <= card.memory_bytes
        assert profile.max_instances * profile.compute_share <= 1.0
        assert profile.max_instances * profile.bandwidth_share <= 1.0
        # usable memory is below the name, which rounds up
        assert 0.85 * piece.memory_label_gb * GIB <= piece.usable_memory_bytes <= piece.memory_label_gb * GIB
        assert piece.memory_bandwidth_gb_per_s == card.memory_bandwidth_gb_per_s * profile.bandwidth_share
        assert piece.dense_tflops["bf16"] == card.dense_tflops["bf16"] * profile.compute_share
        assert (piece.interconnect.kind, piece.max_gpus_per_node, piece.mig) == ("none", 1, ())


def test_known_slices() -> None:
    assert ACCELERATORS["h200-sxm-141gb/1g.18gb"].usable_memory_bytes == 16 * GIB
    assert ACCELERATORS["h200-sxm-141gb/3g.71gb"].usable_memory_bytes == 69.5 * GIB
    assert ACCELERATORS["b200-sxm-180gb/2g.45gb"].usable_memory_bytes == 44.25 * GIB
    assert ACCELERATORS["h100-nvl-94gb/1g.12gb"].usable_memory_bytes == 10.75 * GIB
    half = ACCELERATORS["h100-sxm-80gb/3g.40gb"]
    assert half.dense_tflops["bf16"] == pytest.approx(989.4 * 60 / 132)
    assert half.memory_bandwidth_gb_per_s == pytest.approx(3350 / 2)


def _folder(tmp_path: Path, row: dict[str, object], copies: int = 1) -> Path:
    (tmp_path / SHARED_FILE).write_bytes((FOLDER / SHARED_FILE).read_bytes())
    file = {"vendor": "NVIDIA", "as_of": "2026-12-01", "accelerators": [row] * copies}
    (tmp_path / "cards.json").write_bytes(msgspec.json.encode(file))
    return tmp_path


ROW: dict[str, object] = {
    "id": "x1-16gb",
    "architecture": "X",
    "memory_label_gb": 16,
    "memory_type": "HBM3",
    "memory_class": "nvidia-hbm3",
    "bandwidth_gb_per_s": 1000,
    "dense_tflops": {"bf16": 100},
    "link": ["pcie5", 63.0],
    "year": 2026,
    "sources": ["@smi x"],
}


def test_a_card_without_a_print_takes_the_share_of_its_class(tmp_path: Path) -> None:
    card = load_accelerators(_folder(tmp_path, ROW))["x1-16gb"]
    share = SHARED.memory_classes["nvidia-hbm3"]
    assert card.memory_basis == "estimated"
    assert card.memory_bytes == round(16 * GIB * share.label_share)
    assert card.usable_memory_bytes == round(16 * GIB * share.label_share * share.usable_share)
    assert card.sources == (f"{SHARED.texts['smi']}: x",)


@pytest.mark.parametrize(
    ("change", "copies", "place"),
    [
        ({}, 2, "x1-16gb: id used twice"),
        ({"memory_class": "tape"}, 1, "'tape' is not in shared.json"),
        ({"mig": "x"}, 1, "'x' is not in shared.json"),
        ({"sources": ["@nowhere"]}, 1, "'nowhere' is not in shared.json"),
        ({"link": ["string", 1.0]}, 1, r"\$.accelerators\[0\].link\[0\]"),
        ({"dense_tflops": {"fp5": 1}}, 1, "dense_tflops"),
        ({"colour": "green"}, 1, "colour"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(
    tmp_path: Path, change: dict[str, object], copies: int, place: str
) -> None:
    with pytest.raises(CatalogError, match=rf"cards.json.*{place}"):
        load_accelerators(_folder(tmp_path, ROW | change, copies))
