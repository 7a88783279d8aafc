"""A finished search: the question, the tables it was asked of, and the options in order."""

import msgspec

from service.domain.calibration import Profiles
from service.domain.fleet import Fleet, IntArray
from service.domain.market import Market, OpenOffers
from service.domain.numeric import FloatArray
from service.domain.options import Options
from service.domain.question import Ask
from service.domain.search import Found


class Searched(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Everything that the parts of an answer are written from."""

    ask: Ask
    fleet: Fleet
    market: Market
    open: OpenOffers
    largest: FloatArray
    """Accelerators of the largest open instance of each accelerator of the fleet; 0 where nobody sells it."""
    profiles: Profiles
    found: Found
    options: Options
    score: FloatArray
    """What each option is ranked by, less is better."""
    order: IntArray
    """Likely options, best first."""
    chosen: tuple[int, ...]
    """The options recommended."""

    def owner(self, option: int) -> int:
        """Accelerator (position in the fleet) of an option."""
        return int(self.found.candidates.accelerator[self.found.survivors[self.options.survivor[option]]])
