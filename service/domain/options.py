"""Options: every surviving candidate with every open offer of its accelerator, in whole instances at a month's price."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.domain.architecture import Architecture
from service.domain.candidates import WeightChoice
from service.domain.demand import mean_share_of_peak, monthly_requests
from service.domain.fleet import IntArray
from service.domain.market import Market, OpenOffers
from service.domain.numeric import FloatArray, as_float
from service.domain.packing import pack
from service.domain.question import Ask
from service.domain.recommendation import RejectionCode
from service.domain.search import Found
from service.domain.unit_cost import monthly_compute_usd
from service.domain.units import GB, HOURS_PER_MONTH, SECONDS_PER_HOUR

TEXT_BYTES_PER_TOKEN = 5.0
"""Bytes of plain text a token stands for (4 to 5; English)."""


class Options(msgspec.Struct, frozen=True, eq=False):
    """One element an option; those that break a bound are left out, and told to the candidates' fate."""

    survivor: IntArray
    """Position among ``Found.survivors``."""
    offer: IntArray
    """Position in ``Market.offers``."""
    instances: FloatArray
    idle_gpus: FloatArray
    monthly_usd: FloatArray
    """Of production and the other environments."""
    rent_usd: FloatArray
    """The part of it that is price x hours."""

    def price_for(self, option: int, price_usd_per_hour: float, monthly_usd: float) -> float:
        """Price per hour at which an option would cost ``monthly_usd``, all else being equal; may be negative."""
        excess = float(self.monthly_usd[option]) - monthly_usd
        return price_usd_per_hour * (1.0 - excess / float(self.rent_usd[option]))


def weight_gb(architecture: Architecture, choice: WeightChoice) -> float:
    """Size of the checkpoint that a weight choice loads, GB."""
    if choice.checkpoint_bytes is not None:
        return choice.checkpoint_bytes / GB
    sizes = choice.precision.weight_bytes
    counts = msgspec.structs.asdict(architecture.parameters)
    return float(sum(counts[name] * as_float(size) for name, size in sizes.items())) / GB


def served_per_second(ask: Ask, found: Found) -> FloatArray:
    """Calls per second that a deployment of each survivor really serves, averaged over its hours of a month."""
    monthly = monthly_requests(ask.traffic, ask.hours_per_month, ask.calls)
    if monthly is None:
        return np.asarray(found.point.load.rate * found.replicas.serving) * mean_share_of_peak(ask.traffic)
    return np.full(found.survivors.size, monthly / (ask.hours_per_month * SECONDS_PER_HOUR))


def options(ask: Ask, found: Found, market: Market, open_offers: OpenOffers) -> Options:
    """Join, pack and price; candidates without any option are told why."""
    survivor, offer = _pairs(found, open_offers)
    gpus = np.asarray(found.deployment.layout.gpus)[survivor]
    sold, price = market.gpus[offer], market.price_usd_per_hour[offer]
    packed = pack(np.asarray(found.replicas.total)[survivor], gpus, sold)
    instances, idle = np.asarray(packed.instances), np.asarray(packed.idle_gpus)
    rent = monthly_compute_usd(price, instances, billed_hours(ask.hours_per_month, market.by_month[offer]))
    monthly = _monthly_usd(ask, found, market, survivor, offer, instances, rent)
    for environment in ask.environments:
        beside = np.asarray(pack(environment.replicas, gpus, sold).instances)
        hours = billed_hours(environment.hours_per_month, market.by_month[offer])
        let = monthly_compute_usd(price, beside, hours)
        rent, monthly = rent + let, monthly + let

    paid = instances * sold
    most_gpus, most_usd = np.full(paid.shape, ask.question.max_gpus), np.full(paid.shape, ask.max_monthly_usd)
    bounds: tuple[Bound, ...] = (
        ("needs_multi_node", np.asarray(packed.fits), sold, gpus),
        ("too_many_gpus", paid <= most_gpus, most_gpus, paid),
        ("over_budget", monthly <= most_usd, most_usd, monthly),
    )
    kept = _keep(found, survivor, bounds)
    return Options(
        survivor=survivor[kept],
        offer=offer[kept],
        instances=instances[kept],
        idle_gpus=idle[kept],
        monthly_usd=monthly[kept],
        rent_usd=np.asarray(rent)[kept],
    )


Bound = tuple[RejectionCode, NDArray[np.bool_], FloatArray, FloatArray]
"""Reason, where it holds, limit and value of each pair."""


def _keep(found: Found, survivor: IntArray, bounds: tuple[Bound, ...]) -> IntArray:
    """Pairs within all bounds; a candidate without any keeps the reason of the pair that came furthest and closest."""
    passed = np.zeros(survivor.size, dtype=np.intp)
    for depth, (_, holds, _, _) in enumerate(bounds):
        passed[(passed == depth) & holds] = depth + 1
    lost = np.setdiff1d(survivor, survivor[passed == len(bounds)])
    for depth, (code, _, limit, value) in enumerate(bounds):
        stopped = np.flatnonzero((passed == depth) & np.isin(survivor, lost))
        # The least excess is written last, and a later bound overwrites an earlier one.
        order = stopped[np.argsort(-(value[stopped] - limit[stopped]), kind="stable")]
        found.candidates.fate.reject(found.survivors[survivor[order]], code, limit[order], value[order])
    return np.flatnonzero(passed == len(bounds))


def _pairs(found: Found, open_offers: OpenOffers) -> tuple[IntArray, IntArray]:
    """Every survivor with every open offer of its accelerator, ordered by survivor and offer."""
    accelerator = found.candidates.accelerator[found.survivors]
    survivors: list[IntArray] = []
    offers: list[IntArray] = []
    for owner in np.unique(accelerator):
        mine = np.flatnonzero(accelerator == owner)
        sold = open_offers.by_accelerator[int(owner)]
        survivors.append(np.repeat(mine, sold.size))
        offers.append(np.tile(sold, mine.size))
    if not survivors:
        nothing = np.empty(0, dtype=np.intp)
        return nothing, nothing
    return np.concatenate(survivors), np.concatenate(offers)


def _monthly_usd(  # noqa: PLR0913 - one column each
    ask: Ask,
    found: Found,
    market: Market,
    survivor: IntArray,
    offer: IntArray,
    instances: FloatArray,
    rent: FloatArray | float,
) -> FloatArray:
    """The total of ``cost_projection`` for production, term by term in its order."""
    sizes = np.array([weight_gb(ask.question.architecture, choice) for choice in ask.question.choices])
    stored = sizes[found.candidates.choice[found.survivors[survivor]]] * instances
    sent = egress_gb(ask, served_per_second(ask, found)[survivor])
    compute = rent + market.setup_fee_usd[offer] * instances / ask.horizon_months
    storage = stored * market.storage_usd_per_gb_month[offer]
    return np.asarray(compute + storage + sent * market.egress_usd_per_gb[offer])


def billed_hours(hours: float, by_month: NDArray[np.bool_]) -> FloatArray:
    """Hours of a month that are paid for: those asked for, or all of them where the offer is let by the month."""
    return np.where(by_month, max(hours, HOURS_PER_MONTH), hours)


def egress_gb(ask: Ask, served: FloatArray) -> FloatArray:
    """Text sent out in a month at ``served`` calls per second, GB."""
    seconds = ask.hours_per_month * SECONDS_PER_HOUR
    return served * seconds * ask.question.work.output.mean * TEXT_BYTES_PER_TOKEN / GB
