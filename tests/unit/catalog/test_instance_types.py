"""The instance types of the clouds: cards resolve, shares and accelerators are marked, faults are told."""

import json
from pathlib import Path

import pytest

import service.catalog
from service.catalog.accelerators import load_accelerators
from service.catalog.instances import instance_key, load_instances
from service.catalog.offers import load_offers
from service.domain.errors import CatalogError

DATA = Path(service.catalog.__file__).parent / "data"
INSTANCES = {instance_key(i.cloud, i.instance_type): i for i in load_instances(DATA / "instances.json")}
ACCELERATORS = load_accelerators(DATA / "accelerators")


def test_types_of_all_clouds() -> None:
    assert len(INSTANCES) >= 282
    clouds = {cloud for cloud, _ in INSTANCES}
    assert clouds >= {"aws", "azure", "gcp", "oci", "vultr", "lambda", "nebius", "digitalocean", "ovh", "scaleway"}


def test_cards_resolve_and_memory_agrees() -> None:
    for instance in INSTANCES.values():
        assert {instance.gpu, *instance.gpu_candidates} - {None} <= ACCELERATORS.keys(), instance.instance_type
        assert instance.source
        assert instance.evidence
        if instance.gpu and instance.gpu_memory_gb:
            label = ACCELERATORS[instance.gpu].memory_label_gb * instance.gpu_fraction
            assert instance.gpu_memory_gb == pytest.approx(label, rel=0.1), instance.instance_type


@pytest.mark.parametrize(
    ("cloud", "name", "gpu", "gpus", "fraction"),
    [
        ("aws", "P5.48xlarge", "h100-sxm-80gb", 8, 1.0),
        ("aws", "g6f.4xlarge", "l4-24gb", 1, 0.5),
        ("azure", "standard_nc80adis_h100_v5", "h100-nvl-94gb", 2, 1.0),
        ("azure", "Standard_NV12ads_A10_v5", "a10-24gb", 1, 0.333),
        ("gcp", "a2-megagpu-16g", "a100-sxm-40gb", 16, 1.0),
        ("oci", "BM.GPU.H100.8", "h100-sxm-80gb", 8, 1.0),
        ("nebius", "gpu-h200-sxm/8gpu-128vcpu-1600gb", "h200-sxm-141gb", 8, 1.0),
    ],
)
def test_known_types(cloud: str, name: str, gpu: str, gpus: int, fraction: float) -> None:
    instance = INSTANCES[instance_key(cloud, name)]
    assert (instance.gpu, instance.gpus, instance.gpu_fraction) == (gpu, gpus, fraction)


def test_what_the_type_alone_does_not_tell_stays_open() -> None:
    assert INSTANCES[instance_key("gcp", "n1-*+nvidia-tesla-t4")].gpus is None
    assert INSTANCES[instance_key("azure", "Standard_NC8ads_A10_v4")].gpus is None
    assert INSTANCES[instance_key("aws", "trn1.32xlarge")].kind == "accelerator"


def test_offers_of_a_known_type_have_its_cards() -> None:
    checked = 0
    for offer in load_offers(DATA / "offers"):
        instance = INSTANCES.get(instance_key(offer.provider, offer.instance_type))
        if instance is not None:
            checked += 1
            assert offer.gpu in {instance.gpu, *instance.gpu_candidates}, offer.id
            assert (offer.gpus, offer.gpu_fraction) == (instance.gpus, instance.gpu_fraction), offer.id
            assert instance.vcpu is None or offer.vcpu is not None, offer.id
    assert checked > 300


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([{"type": "a", "gpu": None, "gpu_name": "x", "on": "nothing"}], "c/a: on: nothing"),
        ([{"type": "a", "gpu": None, "gpu_name": "x", "on": "s", "gpus": 0}], "gpus"),
        ([{"type": n, "gpu": None, "gpu_name": "x", "on": "s"} for n in ("a", "A")], "c/A: type named twice"),
    ],
)
def test_faults_name_file_and_place(tmp_path: Path, rows: list[dict[str, object]], told: str) -> None:
    path = tmp_path / "instances.json"
    sources = {"s": {"source": "https://example.com", "evidence": "read"}}
    path.write_text(json.dumps({"format": 1, "sources": sources, "clouds": {"c": rows}}))
    with pytest.raises(CatalogError, match=rf"instances\.json.*{told}"):
        load_instances(path)
