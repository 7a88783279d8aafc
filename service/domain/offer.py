"""Who sells an accelerator, on what terms and at what price."""

from typing import Literal

import msgspec

Tenancy = Literal["dedicated", "shared", "marketplace", "serverless", "owned"]
Term = Literal["on_demand", "spot", "monthly", "reserved", "prepaid", "serverless", "marketplace_bid"]
Availability = Literal["in_stock", "limited", "none", "unknown"]
Evidence = Literal[
    "official_docs",
    "generated_price_file",
    "third_party_catalog",
    "api_or_page_sample",
    "transcription_by_third_party",
    "secondary_article",
    "live_api",
    "operator_quote",
]
OfferFlag = Literal[
    "price_outlier",
    "gpu_ambiguous",
    "memory_conflict",
    "quote_required",
    "commitment_price",
    "min_term_unknown",
    "accelerator_price_only",
    "unit_doubtful",
    "per_gpu_quote",
    "size_not_quoted",
    "from_price",
    "undated",
    "day_unknown",
    "sample_listing",
    "discounted",
]
"""What to know before trusting an offer:

price_outlier: beyond four times its card's median; gpu_ambiguous: the seller does not tell which of ``gpu_candidates``;
memory_conflict: sources contradict each other on the memory; quote_required: no price published;
commitment_price: the price holds for a long commitment only; min_term_unknown: that commitment's length is not told;
accelerator_price_only: host CPU and RAM are billed on top; unit_doubtful: the source leaves open what the price covers;
per_gpu_quote: quoted per accelerator, the instance sizes sold are not told; size_not_quoted: the price of another size
scaled by the number of accelerators; from_price: the lowest of a range; undated: no date; day_unknown: the source tells
the month only, ``as_of`` is its first day; sample_listing: one listing or a median of few, not a price list;
discounted: the list price is higher.
"""


class EarlierPrice(msgspec.Struct, frozen=True):
    """What the same offer cost before."""

    as_of: str
    price_usd_per_hour: float


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """One thing a provider sells: an instance with accelerators, a region, a term and a price, normalised once."""

    id: str
    """``provider/sku/region/term``; stable across revisions."""
    provider: str
    instance_type: str
    gpu: str | None
    """Accelerator id; the smaller candidate where the form factor is not told; None: not in the catalog."""
    gpu_candidates: tuple[str, ...] = ()
    gpu_name: str = ""
    """The seller's own words."""
    gpus: int
    """Accelerators of one instance (1 for a fraction)."""
    gpu_fraction: float = 1.0
    """Share of one card that the instance holds; below 1 the memory and compute are that share."""
    gpu_memory_gb: float | None = None
    """Memory per accelerator in the seller's unit (raw), GB."""
    price_usd_per_hour: float | None = None
    """Price of the whole instance per hour; None: the provider must be asked."""
    price_as_quoted: float | None = None
    quoted_unit: str = ""
    hours_per_month_used: float | None = None
    """Divisor used to turn a monthly price into hours, where one was."""
    currency: str = "USD"
    region: str | None = None
    country: str | None = None
    """ISO 3166-1 alpha-2, where known."""
    continent: str | None = None
    tenancy: Tenancy
    term: Term
    min_term_months: float = 0.0
    billing_increment: str | None = None
    setup_fee_usd: float = 0.0
    interruptible: bool = False
    verified: bool | None = None
    reliability: float | None = None
    """0..1, for marketplace hosts."""
    availability: Availability = "unknown"
    availability_checked_at: str | None = None
    vcpu: float | None = None
    ram_gb: float | None = None
    disk_note: str | None = None
    network_note: str | None = None
    includes: tuple[str, ...] = ("cpu", "ram")
    """What the price covers; a bare-GPU price leaves out cpu and ram and is not recommended without them."""
    as_of: str | None = None
    """Date of the price (YYYY-MM-DD); None: undated, listed but never priced by default."""
    valid_until: str | None = None
    evidence: Evidence
    source: str
    flags: tuple[OfferFlag, ...] = ()
    notes: str | None = None
    earlier_prices: tuple[EarlierPrice, ...] = ()
    """Dated prices of the same offer that a newer one replaced, newest first."""

    @property
    def usd_per_gpu_hour(self) -> float | None:
        """Dollars per hour of one whole accelerator (of a share of one, what the whole would cost); None: no price."""
        price = self.price_usd_per_hour
        return None if price is None else price / (self.gpus * self.gpu_fraction)


PROVIDER_ATTRIBUTES = (
    "management_duties",
    "support_duties",
    "os_and_driver",
    "upgrade",
    "hardware_replacement",
    "provisioning_time",
    "persistent_storage",
    "backup",
    "stopped_state_billing",
    "start_up",
    "autoscaling",
    "inference_endpoint",
    "scale_to_zero",
    "isolation",
    "host_conditions",
    "storage_price",
    "egress_price",
)
"""Facts asked about every provider, in the order in which they are shown."""


class Attribute(msgspec.Struct, frozen=True):
    """One fact about a provider, or ``unknown``."""

    value: str = "unknown"
    evidence: str | None = None
    as_of: str | None = None
    source: str | None = None


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """A seller of accelerators: what is known of how it runs them, and what must be asked."""

    id: str
    name: str
    status: Literal["priced", "quote_required", "unproven", "gpu_not_proven"]
    """Why a provider without priced GPU offers has none."""
    aliases: tuple[str, ...] = ()
    stale_after_days: int = 30
    """Age of a price past which it is called stale."""
    storage_usd_per_gb_month: float | None = None
    egress_usd_per_gb: float | None = None
    attributes: dict[str, Attribute] = {}
    """One entry for each of ``PROVIDER_ATTRIBUTES``, ``unknown`` where no source tells."""
    source: str = ""
    as_of: str | None = None
    notes: str | None = None
