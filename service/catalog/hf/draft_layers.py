"""Multi-token-prediction layers that a checkpoint carries for speculative decoding."""

from collections.abc import Iterable, Sequence

from service.catalog.hf.fields import Fields
from service.catalog.hf.mlp import Mlp, matrices, moe_parameters
from service.catalog.hf.parts import Part
from service.catalog.hf.traits import Traits
from service.catalog.hf.widths import Widths
from service.domain.architecture import ParameterCounts

_MOST = 64


def draft_parts(fields: Fields, traits: Traits, widths: Widths, mlp: Mlp, mixers: Sequence[Part]) -> Iterable[Part]:
    """One decoder layer each, with a projection of two hidden states to one.

    Attention is of a kind that the model has: the windowed one where drafts are dense.

    The copies of embedding and head that some checkpoints store with them are shared when loaded, so not counted.
    """
    layers = fields.integer("num_nextn_predict_layers", "mtp_num_hidden_layers", high=_MOST) or 0
    kinds = ("sliding", "full", "latent") if traits.draft_dense else ("full", "latent", "sliding")
    attending = {cache.kind: part.each for part in mixers for cache in part.caches}
    mixer = next((attending[kind] for kind in kinds if kind in attending), None)
    if not layers or mixer is None:
        return
    count = mixer.attention + mixer.attention_replicated + mixer.norms
    count += 2 * widths.hidden * widths.hidden + 4 * widths.hidden
    if mlp.moe_layers and not traits.draft_dense:
        experts = moe_parameters(traits, widths, mlp)
        count += experts.routed_experts + experts.shared_experts + experts.router
    else:
        count += matrices(widths.hidden, mlp.dense_width or widths.intermediate or 0, gated=mlp.gated)
    yield Part(layers=layers, each=ParameterCounts(mtp=count))
