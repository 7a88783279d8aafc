"""Models whose dimensions are public, written out by hand, and shorthands that several tests share."""

import msgspec

from service.domain.architecture import Architecture, CacheLayers, ParameterCounts
from service.domain.deployment import Deployment, MemoryParts
from service.domain.engine import EngineBehaviour
from service.domain.memory import account, parts_of

LLAMA_8B = Architecture(
    model_type="llama",
    role="decoder",
    layers=32,
    hidden_size=4096,
    vocab_size=128_256,
    query_heads=32,
    kv_heads=8,
    max_position_embeddings=131_072,
    intermediate_size=14_336,
    parameters=ParameterCounts(
        embedding=128_256 * 4096,
        lm_head=128_256 * 4096,
        attention=32 * (2 * 4096 * 4096 + 2 * 4096 * 1024),
        dense_mlp=32 * 3 * 4096 * 14_336,
        norms=65 * 4096,
    ),
    cache=(CacheLayers(kind="full", layers=32, kv_heads=8, elements_per_head=256, query_heads=32, score_dim=256),),
    dense_layers=32,
)
LLAMA_70B = msgspec.structs.replace(
    LLAMA_8B,
    layers=80,
    hidden_size=8192,
    query_heads=64,
    intermediate_size=28_672,
    parameters=ParameterCounts(
        embedding=128_256 * 8192,
        lm_head=128_256 * 8192,
        attention=80 * (2 * 8192 * 8192 + 2 * 8192 * 1024),
        dense_mlp=80 * 3 * 8192 * 28_672,
        norms=161 * 8192,
    ),
    cache=(msgspec.structs.replace(LLAMA_8B.cache[0], layers=80, query_heads=64),),
    dense_layers=80,
)
GPT_OSS_120B = Architecture(
    model_type="gpt_oss",
    role="decoder",
    layers=36,
    hidden_size=2880,
    vocab_size=201_088,
    query_heads=64,
    kv_heads=8,
    max_position_embeddings=131_072,
    intermediate_size=4 * 2880,
    parameters=ParameterCounts(
        embedding=201_088 * 2880,
        lm_head=201_088 * 2880,
        attention=36 * 2880 * (2 * 4096 + 2 * 512),
        routed_experts=36 * 128 * 3 * 2880 * 2880,
        router=36 * 128 * 2880,
        norms=73 * 2880,
    ),
    cache=(
        CacheLayers(kind="full", layers=18, kv_heads=8, elements_per_head=128),
        CacheLayers(kind="sliding", layers=18, kv_heads=8, elements_per_head=128, window_tokens=128),
    ),
    moe_layers=36,
    experts=128,
    experts_per_token=4,
    moe_intermediate_size=2880,
    checkpoint_format="mxfp4",
)
HYBRID_27B = msgspec.structs.replace(
    LLAMA_8B,
    model_type="qwen3_5",
    layers=64,
    hidden_size=5120,
    vocab_size=248_320,
    query_heads=24,
    kv_heads=4,
    max_position_embeddings=262_144,
    cache=(
        CacheLayers(kind="full", layers=16, kv_heads=4, elements_per_head=512),
        CacheLayers(kind="state", layers=48, state_bytes=3_207_168),
    ),
    dense_layers=64,
)


def memory_parts(shape: Architecture, held: Deployment, rules: EngineBehaviour) -> MemoryParts:
    """Parts of the memory of one accelerator."""
    return parts_of(account(shape, held, rules), shape, held, rules)
