"""Names of accelerators as people, clouds and drivers write them."""

from pathlib import Path
from timeit import timeit

import pytest

import service.catalog
from service.catalog.accelerators import load_accelerators
from service.catalog.gpu_names import GpuMatch, build_gpu_index, closest_gpus, resolve_gpu

ACCELERATORS = load_accelerators(Path(service.catalog.__file__).parent / "data" / "accelerators")
POPULARITY = {
    "h100-sxm-80gb": 90,
    "a100-sxm-80gb": 43,
    "a100-sxm-40gb": 36,
    "a100-pcie-80gb": 32,
    "rtx-pro-6000-blackwell-server-96gb": 57,
    "rtx-a6000-48gb": 24,
    "l40s-48gb": 34,
    "rtx-6000-ada-48gb": 11,
    "h200-sxm-141gb": 14,
}
INDEX = build_gpu_index(ACCELERATORS, POPULARITY)


def _match(name: str) -> GpuMatch:
    match = resolve_gpu(name, INDEX)
    assert match is not None, name
    return match


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm-40gb"),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090-24gb"),
        ("NVIDIA GeForce RTX 4090 D", "rtx-4090-d-24gb"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "rtx-4070-ti-super-16gb"),
        ("NVIDIA GeForce RTX 3070 Laptop GPU", "rtx-3070-laptop-8gb"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada-48gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "rtx-pro-6000-blackwell-maxq-96gb"),
        ("NVIDIA GH200 480GB", "gh200-96gb"),
        ("NVIDIA GB10", "gb10-dgx-spark-128gb"),
        ("NVIDIA H20-3e", "h20-141gb"),
        ("NVIDIA A40-48Q", "a40-48q"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("AMD Instinct MI300X OAM", "mi300x-192gb"),
        ("AMD Radeon RX 7900 XTX", "rx-7900-xtx-24gb"),
    ],
)
def test_what_drivers_print(name: str, id_: str) -> None:
    assert _match(name) == GpuMatch(id_, (id_,), exact=True)


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("nvidia-tesla-t4", "t4-16gb"),
        ("nvidia-l4", "l4-24gb"),
        ("nvidia-h100-80gb", "h100-sxm-80gb"),
        ("nvidia-h100-mega-80gb", "h100-sxm-80gb"),
        ("nvidia-tesla-a100", "a100-sxm-40gb"),
        ("nvidia-a100-80gb", "a100-sxm-80gb"),
        ("RTX_4090", "rtx-4090-24gb"),
        ("A100_SXM4", "a100-sxm-80gb"),
        ("H100_NVL", "h100-nvl-94gb"),
        ("Q_RTX_8000", "quadro-rtx-8000-48gb"),
        ("RTX PRO 6000 SE", "rtx-pro-6000-blackwell-server-96gb"),
        ("RTX PRO 6000 WE", "rtx-pro-6000-blackwell-workstation-96gb"),
        ("RTX 5090 (High freq.)", "rtx-5090-32gb"),
        ("RTX 4090 (48 GB mod)", "rtx-4090-48gb"),
        ("A10 (1/6)", "a10-24gb"),
        ("HGX H100", "h100-sxm-80gb"),
        ("HGX H200 SXM", "h200-sxm-141gb"),
        ("B200 SXM6", "b200-sxm-180gb"),
        ("NVIDIA GB200 NVL72", "gb200-186gb"),
        ("8x H100 SXM5 80GB", "h100-sxm-80gb"),
        ("8xH100", "h100-sxm-80gb"),
        ("Apple-M3-Max-40core-64GB", "apple-m3-max-64gb"),
        ("Intel-Arc-Pro-B60-Dual-48GB", "arc-pro-b60-dual-48gb"),
        ("H200-PCIe-141GB", "h200-nvl-141gb"),
        ("L40S PCIe 48GB", "l40s-48gb"),
        ("Trillium", "tpu-v6e-32gb"),
    ],
)
def test_what_clouds_and_benchmarks_write(name: str, id_: str) -> None:
    assert _match(name).id == id_


@pytest.mark.parametrize(
    "name",
    [
        "h100-sxm-80gb",
        "H100-SXM-80GB",
        "H100 SXM 80 GB",
        "h100_sxm5_80gb",
        "NVIDIA H100 SXM5 80GB",
        "H100SXM80GB",
        "h100 80gb sxm",
        "nvidia h100sxm580gb",
        " H100-SXM-80GB ",
    ],
)
def test_case_spaces_dashes_and_vendor_words_do_not_matter(name: str) -> None:
    assert _match(name).id == "h100-sxm-80gb"


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("B200 192GB", "b200-sxm-180gb"),
        ("B200 179 GB", "b200-sxm-180gb"),
        ("B300-SXM-288GB", "b300-sxm-270gb"),
        ("B300 262GB", "b300-sxm-270gb"),
        ("GB200-192GB", "gb200-186gb"),
        ("H100 96GB", "h100-sxm-96gb"),
        ("H100 81559MiB", "h100-sxm-80gb"),
        ("A100 80", "a100-sxm-80gb"),
        ("A100-40GB", "a100-sxm-40gb"),
        ("L40S 45GB", "l40s-48gb"),
    ],
)
def test_memory_words_match_within_ten_percent(name: str, id_: str) -> None:
    assert _match(name).id == id_


def test_the_commonest_candidate_is_taken_and_the_others_listed() -> None:
    assert _match("A100") == GpuMatch(
        "a100-sxm-80gb", ("a100-sxm-80gb", "a100-sxm-40gb", "a100-pcie-80gb", "a100-pcie-40gb"), exact=False
    )
    assert _match("A100 80GB").candidates == ("a100-sxm-80gb", "a100-pcie-80gb")
    assert _match("RTX 6000").candidates[0] == "rtx-pro-6000-blackwell-server-96gb"
    other = build_gpu_index(ACCELERATORS, {"a100-pcie-40gb": 1})
    match = resolve_gpu("A100", other)
    assert match is not None
    assert match.id == "a100-pcie-40gb"


def test_texts_that_name_several_cards() -> None:
    assert set(_match("L40 / L40S / 6000 Ada").candidates) == {"l40-48gb", "l40s-48gb", "rtx-6000-ada-48gb"}
    assert _match("L40 / L40S / 6000 Ada").id == "l40s-48gb"
    assert set(_match("NVIDIA GeForce RTX 5070 Ti + RTX 5090 D").candidates) == {"rtx-5070-ti-16gb", "rtx-5090-d-32gb"}


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("h100-sxm-80gb/1g.10gb", "h100-sxm-80gb/1g.10gb"),
        ("A100-SXM4-80GB MIG 3g.40gb", "a100-sxm-80gb/3g.40gb"),
        ("NVIDIA A100-PCIE-40GB MIG 1g.5gb", "a100-pcie-40gb/1g.5gb"),
        ("NVIDIA H200 MIG 1g.18gb", "h200-sxm-141gb/1g.18gb"),
        ("H100 80GB mig-1g.10gb", "h100-sxm-80gb/1g.10gb"),
        ("A30 MIG 1g.6gb+me", "a30-24gb/1g.6gb"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb", "rtx-pro-6000-blackwell-server-96gb/1g.24gb"),
        ("mig-1g.10gb", "h100-sxm-80gb/1g.10gb"),
    ],
)
def test_mig_slices(name: str, id_: str) -> None:
    assert _match(name).id == id_


def test_memory_that_only_slices_have_names_a_slice() -> None:
    match = _match("A100 20GB")
    assert match.id == "a100-sxm-80gb/2g.20gb"
    assert all("/" in id_ for id_ in match.candidates)


def test_a_form_factor_that_no_such_card_has_is_set_aside() -> None:
    assert _match("B200 PCIe") == GpuMatch("b200-sxm-180gb", ("b200-sxm-180gb",), exact=False)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "foo",
        "RTX 9999",
        "A100X",
        "RTX 4090 Laptop",
        "L40S 64GB",
        "h100-sxm-80gb/9g.99gb",
        "GT 730 / P600 / K620",
        "GTX",
        "80GB",
        "/",
        "+",
        "A" * 10_000,
        "Cloud AI 100",
    ],
)
def test_names_that_fit_no_card(name: str) -> None:
    assert resolve_gpu(name, INDEX) is None


def test_suggestions_are_the_nearest_ids() -> None:
    assert closest_gpus("H1000", INDEX)[0] == "h100-sxm-80gb"
    assert closest_gpus("rtx 4095", INDEX)[0] == "rtx-4090-24gb"
    assert len(closest_gpus("?", INDEX, n=3)) == 3
    assert len(closest_gpus("x" * 1_000_000, INDEX)) == 5


def test_every_id_and_alias_finds_its_card() -> None:
    for card in ACCELERATORS.values():
        for name in (card.id, *card.aliases):
            assert _match(name).id == card.id
            assert _match(name.upper()).id == card.id
        for name in card.ambiguous_aliases:
            assert card.id in _match(name).candidates


def test_an_id_is_a_look_up_and_a_name_is_cheap() -> None:
    def best(name: str) -> float:
        return min(timeit(lambda: resolve_gpu(name, INDEX), number=200) for _ in range(5)) / 200

    assert best("h100-sxm-80gb") < 5e-6
    assert best("nvidia rtx pro 6000 server 96 GB") < 200e-6
