"""What step time depends on in the requests: lengths, what the prefix cache saves, what speculation multiplies."""

import msgspec

from service.domain.architecture import Architecture
from service.domain.lengths import Lengths, mean_context_tokens
from service.domain.strata import STRATUM_WEIGHTS

DEFAULT_ACCEPTANCE = 0.7
"""Share of draft tokens that the model accepts where the caller gives none: 0.6-0.8 is usual for EAGLE and MTP drafts
(DeepSeek-V3 report, arXiv 2412.19437, section 5.4.3: 0.85-0.90 for the first token of its own MTP module)."""


class RequestShape(msgspec.Struct, frozen=True):
    """Requests as a running batch sees them."""

    input: Lengths
    output: Lengths
    prefix_hit: float = 0.0
    """Share of the input whose KV entries are already in the cache, 0..1."""
    tokens_per_step: float = 1.0
    """Output tokens that a running sequence gains in one step; above 1 with speculative decoding."""
    rows_per_step: float = 1.0
    """Rows that a running sequence adds to the matrix products of a step; 0 for models that only read (encoders)."""
    draft_passes: float = 0.0
    """Passes of the draft model before each step."""

    @property
    def steps(self) -> float:
        """Steps in which a mean request runs (the first token comes with its prefill and costs a step all the same)."""
        return max(self.output.mean / self.tokens_per_step, 1.0)

    @property
    def computed_input(self) -> float:
        """Input tokens that a mean request computes: those not found in the prefix cache, at least one."""
        return self.computed(self.input.mean)

    def computed(self, tokens: float) -> float:
        """Input tokens computed for a prompt of ``tokens``; an engine always computes the last one."""
        return max(tokens * (1.0 - self.prefix_hit), 1.0)

    @property
    def context(self) -> float:
        """Tokens in the cache of a running sequence, averaged over its steps."""
        return mean_context_tokens(self.input, self.output)

    @property
    def inverse_steps(self) -> float:
        """Mean of 1 / steps: short answers average over fewer steps, so their time per token varies more."""
        pairs = zip(STRATUM_WEIGHTS, self.output.points, strict=True)
        return sum(weight / max(tokens / self.tokens_per_step, 1.0) for weight, tokens in pairs)


def request_shape(  # noqa: PLR0913 - what requests vary by
    architecture: Architecture,
    prompt: Lengths,
    output: Lengths,
    *,
    prefix_hit: float = 0.0,
    draft_tokens: float = 0.0,
    acceptance_rate: float | None = None,
    draft_model: bool = False,
) -> RequestShape:
    """Shape of the requests for a model.

    With ``draft_tokens`` k and acceptance rate a of each, a step yields (1 - a^(k+1)) / (1 - a) tokens (Leviathan et
    al., "Fast Inference from Transformers via Speculative Decoding", arXiv 2211.17192, eq. 1) and verifies k + 1 rows;
    ``draft_model``: a draft runs k times before it (n-gram look-up costs nothing). Encoders only read: one step.
    """
    if architecture.role == "encoder":
        one = Lengths(
            mean=1.0, second_moment=1.0, p50=1.0, p95=1.0, p99=1.0, max=1.0, points=(1.0,) * len(output.points)
        )
        return RequestShape(input=prompt, output=one, prefix_hit=prefix_hit, rows_per_step=0.0)
    accepted = DEFAULT_ACCEPTANCE if acceptance_rate is None else acceptance_rate
    tokens = draft_tokens + 1.0 if accepted >= 1.0 else (1.0 - accepted ** (draft_tokens + 1.0)) / (1.0 - accepted)
    return RequestShape(
        input=prompt,
        output=output,
        prefix_hit=prefix_hit,
        tokens_per_step=tokens if draft_tokens > 0.0 else 1.0,
        rows_per_step=draft_tokens + 1.0,
        draft_passes=draft_tokens if draft_model else 0.0,
    )
