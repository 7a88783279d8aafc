"""Laws of experts over data ranks: weights, padding, workspace and legality cut them alike."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.catalog.accelerators import load_accelerators
from service.catalog.engines import behaviour, load_engines
from service.catalog.quantizations import load_quantizations
from service.catalog.snapshot import Snapshot
from service.domain.activation import EXPERT_CHUNK_TOKENS, profiled_peak
from service.domain.assembly import assemble
from service.domain.deployment import Layout
from service.domain.engine import EngineRequest
from service.domain.legal_layout import layout_fault
from service.domain.subject import Subject
from service.domain.weights import expert_slices

DATA = Path("service/catalog/data")
CARDS = load_accelerators(DATA / "accelerators")
FORMATS = load_quantizations(DATA / "quantizations.json")
VLLM = behaviour(load_engines(DATA / "engines")["vllm"], "0.19.0")
SGLANG = behaviour(load_engines(DATA / "engines")["sglang"], "0.5.5")


def placed(snapshot: Snapshot, layout: Layout, rules: Any = VLLM, **engine: Any) -> Subject:  # noqa: ANN401 - settings
    model = snapshot.models["deepseek-ai/DeepSeek-V3"].architecture
    weights = FORMATS["fp8"]
    request = EngineRequest(name=rules.engine, **({"max_model_len": 8192} | engine))
    return assemble("m", model, CARDS["h200-sxm-141gb"], layout, weights, FORMATS["bf16"], rules, request)[0]


@settings(max_examples=60, deadline=None)
@given(
    tensor=st.sampled_from([1.0, 2.0, 4.0, 8.0]),
    data=st.sampled_from([1.0, 2.0, 8.0]),
    expert=st.sampled_from([0.0, 1.0]),
    span=st.booleans(),
)
def test_experts_are_whole_or_cut_over_the_ranks_that_share_them(
    tensor: float, data: float, expert: float, *, span: bool
) -> None:
    slices = expert_slices(Layout(tensor=tensor, data=data, expert=expert), span_data=span)
    assert slices == (1.0 if expert else tensor * (data if span else 1.0))


def test_the_tokens_of_all_data_ranks_reach_experts(snapshot: Snapshot) -> None:
    def peak(layout: Layout, rules: Any = VLLM) -> Any:  # noqa: ANN401 - bytes
        subject = placed(snapshot, layout, rules, max_num_batched_tokens=2048)
        return profiled_peak(subject.architecture, subject.deployment, rules)

    whole = peak(Layout(tensor=8.0, expert=1.0))
    shared = peak(Layout(data=8.0, expert=1.0))
    assert shared.resident > whole.resident
    assert shared.forward > whole.forward
    # SGLang has its own experts on every data rank unless they are spread.
    alone, apart = peak(Layout(), SGLANG), peak(Layout(data=8.0), SGLANG)
    assert apart.forward == alone.forward
    assert peak(Layout(data=8.0, expert=1.0), SGLANG).forward > alone.forward


def test_the_workspace_stops_at_a_chunk(snapshot: Snapshot) -> None:
    def resident(tokens: float) -> Any:  # noqa: ANN401 - bytes
        subject = placed(snapshot, Layout(data=8.0, expert=1.0), max_num_batched_tokens=tokens)
        return profiled_peak(subject.architecture, subject.deployment, VLLM).resident

    full = int(EXPERT_CHUNK_TOKENS) // 8
    assert resident(full // 2) < resident(full) == resident(2 * full)


@pytest.mark.parametrize(("width", "code"), [(768, None), (24, "expert_width_not_divisible")])
def test_a_width_must_divide_over_all_ranks_that_cut_it(snapshot: Snapshot, width: int, code: str | None) -> None:
    model = msgspec.structs.replace(snapshot.models["Qwen/Qwen3-30B-A3B"].architecture, moe_intermediate_size=width)
    layout = Layout(tensor=4.0, data=4.0)
    found = layout_fault(model, layout, span_data=True)
    assert (found and found.code) == code
    assert layout_fault(model, layout) is None
    assert layout_fault(model, Layout(tensor=4.0, data=4.0, expert=1.0), span_data=True) is None
