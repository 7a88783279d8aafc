"""Activation memory: what an engine's dummy run peaks at, from first principles.

vLLM profiles one batch of ``max_num_batched_tokens`` tokens and then its sampler over ``max_num_seqs`` rows of the
whole vocabulary; both peaks are not alive together, so the larger one counts. On top come buffers that stay
allocated: the workspace of fused expert kernels, the context expansion of latent attention, the encoder output of a
multimodal model.

Fitted on H100 start-up logs of vLLM 0.19 (24 models, mean error 1.2 %); the same formula with 38 bytes per logit gives
the prints of 0.8 to 0.16 (gpt-oss-20b 7.38 GiB, Qwen3-14B 5.64, Llama-3.3-70B 4.84).
"""

import msgspec

from service.domain.architecture import Architecture
from service.domain.deployment import ACTIVATION_BYTES, Deployment
from service.domain.engine import EngineBehaviour
from service.domain.kv_pool import PHYSICAL_BATCH_TOKENS
from service.domain.numeric import Number, choose, greater, lesser
from service.domain.units import GIB
from service.domain.weights import expert_slices

COMPUTE_BYTES = 4.0
"""llama.cpp computes logits and scores in fp32."""

ENCODER_WIDTH = 1280
"""Width of the encoders of cross-attention models: Whisper-large, and the vision tower of Llama 3.2."""

LARGEST_LATENT_BLOCK_FACTOR = 8.0
"""vLLM sizes the latent-attention workspace for eight contexts of max_model_len, up to a limit in tokens
(MLACommonMetadataBuilder.determine_chunked_prefill_workspace_size)."""


EXPERT_CHUNK_TOKENS = 32_768.0
"""Fused expert kernels take no more tokens at once (VLLM_FUSED_MOE_CHUNK_SIZE, vLLM pull request 7995; later releases
halve it, so this is the cautious figure). Taken for the other engines too. It bounds the tokens of other ranks only: of a
rank's own, some kernels take all at once (Kimi-Linear with 64,000 tokens, vLLM issue 28228)."""


class MlpWidths(msgspec.Struct, frozen=True):
    """Widths of the MLP activations of one token, from the parameter counts."""

    dense: float
    shared: float
    matrices: float


def mlp_widths(architecture: Architecture) -> MlpWidths:
    """Dense MLP width and joint width of the shared experts: parameters / (layers x matrices x hidden size)."""
    matrices = 3.0 if architecture.gated_mlp else 2.0
    counts, hidden = architecture.parameters, architecture.hidden_size
    dense = counts.dense_mlp / (matrices * hidden * architecture.dense_layers) if architecture.dense_layers else 0.0
    shared = counts.shared_experts / (matrices * hidden * architecture.moe_layers) if architecture.moe_layers else 0.0
    return MlpWidths(dense=dense, shared=shared, matrices=matrices)


class ActivationPeak(msgspec.Struct, frozen=True):
    """Bytes on one rank; the last pipeline stage also samples."""

    sampler: Number
    forward: Number
    resident: Number
    """Workspaces that stay allocated, on every stage."""
    hand_over: Number
    """Hidden states and residuals that pipeline stages receive."""

    def on_stage(self, *, samples: bool) -> Number:
        """Peak of a stage that does, or does not, hold the output head."""
        peak = greater(self.sampler, self.forward) if samples else self.forward
        return peak + self.resident + self.hand_over


def profiled_peak(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> ActivationPeak:
    """Peak of the dummy run of vLLM, and the estimate used for SGLang and TensorRT-LLM."""
    settings, tensor = deployment.settings, deployment.layout.tensor
    tokens = settings.max_num_batched_tokens
    row = tokens * ACTIVATION_BYTES
    hidden = row * architecture.hidden_size
    base = behaviour.activation_base_gib * GIB
    widths = mlp_widths(architecture)

    rows = settings.max_num_seqs
    if behaviour.activation_rule == "outside_budget":
        rows = lesser(rows, float(behaviour.graph_most_tokens))
    logits = rows * architecture.vocab_size
    sampler = logits * behaviour.sampler_bytes_per_logit + hidden * behaviour.hidden_copies + base
    copies = behaviour.mlp_copies - (3.0 - widths.matrices)
    mlp = (row * copies * max(widths.dense, widths.shared)) / tensor
    experts = _expert_workspace(architecture, deployment, behaviour)
    others = _token_ranks(deployment, behaviour) - 1.0
    gathered = hidden * (others if architecture.experts else 0.0)
    forward = mlp + gathered + hidden * behaviour.forward_hidden_copies + base
    resident = _latent_workspace(architecture, deployment, behaviour)
    if behaviour.expert_workspace:
        resident = resident + experts
    else:
        forward = forward + experts
    if behaviour.encoder_cache and architecture.parameters.vision:
        resident = resident + hidden
    resident = resident + _encoder_inputs(architecture, deployment, behaviour)
    if architecture.role == "encoder":
        sampler = 0.0 * sampler
    staged = choose(deployment.layout.pipeline > 1.0, 2.0, 0.0)
    return ActivationPeak(sampler=sampler, forward=forward, resident=resident, hand_over=hidden * staged)


def _token_ranks(deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """Data ranks whose tokens reach the experts of one rank: all that share experts.

    The default exchange of vLLM gathers the hidden states of every data rank before the expert layer
    (``allgather_reducescatter``, ``naive`` before it), with expert parallelism or with experts cut over data ranks.
    """
    data = deployment.layout.data
    return data if behaviour.experts_span_data else choose(deployment.layout.expert > 0.0, data, 1.0)


def _expert_workspace(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """Buffers of the fused expert kernels: tokens x experts per token x (max(I, H) + max(2 I, H)) x 2 bytes.

    vLLM fused_moe ``workspace_shapes``; I is the expert width on the rank (``expert_slices``), H the hidden size. Tokens
    are those of all data ranks that share the experts, up to one chunk. ``separate_expert_caches``: three caches of 2 I,
    I and H instead (``fused_experts_impl`` before the first and the last shared one).
    """
    hidden = float(architecture.hidden_size)
    width = architecture.moe_intermediate_size / expert_slices(deployment.layout, span_data=behaviour.experts_span_data)
    own = deployment.settings.max_num_batched_tokens
    tokens = greater(own, lesser(own * _token_ranks(deployment, behaviour), EXPERT_CHUNK_TOKENS))
    rows = tokens * architecture.experts_per_token
    separate = behaviour.separate_expert_caches
    each = 3.0 * width + hidden if separate else greater(width, hidden) + greater(2.0 * width, hidden)
    return rows * each * ACTIVATION_BYTES * (1.0 - deployment.precision.mxfp4_experts)


def _encoder_inputs(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """Encoder activations where each of ``max_num_seqs`` profiled sequences brings an image or a sound of its own.

    Whisper-large printed 10.5 GiB for 256 x 1,500 frames: 11.5 rows of 1,280 elements for each.
    """
    tokens = max((group.window_tokens for group in architecture.cache if group.kind == "cross"), default=0)
    rows = deployment.settings.max_num_seqs * float(tokens)
    width = float(min(architecture.hidden_size, ENCODER_WIDTH))
    return rows * behaviour.encoder_profile_copies * width * ACTIVATION_BYTES


def _latent_workspace(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    latent = max((group.elements_per_head for group in architecture.cache if group.kind == "latent"), default=0)
    expanded = lesser(
        LARGEST_LATENT_BLOCK_FACTOR * deployment.settings.max_model_len, float(behaviour.latent_prefill_tokens)
    )
    return expanded * latent * ACTIVATION_BYTES


def compute_buffer(architecture: Architecture, deployment: Deployment, behaviour: EngineBehaviour) -> Number:
    """llama.cpp's compute buffer: logits, or attention scores without flash attention, of one physical batch.

    A quantized cache needs flash attention. 512 x vocabulary x 4 bytes explains Gemma-2-2B (504.5 MiB printed, 500
    computed) and Gemma-3-27B (522.5, 512); 512 x context x heads x 4 bytes explains DeepSeek-R1 at 8,192 tokens (2,218
    MiB printed, 2,048 computed).
    """
    batch = lesser(PHYSICAL_BATCH_TOKENS, deployment.settings.max_num_batched_tokens) * COMPUTE_BYTES
    logits = batch * architecture.vocab_size
    context = deployment.settings.max_model_len
    layer = batch * (4.0 * architecture.hidden_size + 2.0 * mlp_widths(architecture).dense)
    if not behaviour.flash_attention:
        scores = batch * (architecture.query_heads * context + context + 4.0 * architecture.hidden_size)
        layer = choose(deployment.precision.kv_bytes < ACTIVATION_BYTES, layer, greater(layer, scores))
    return greater(logits + batch * architecture.hidden_size, layer) + behaviour.activation_base_gib * GIB
