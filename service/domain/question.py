"""What a recommendation is asked, in the domain's terms: the technical question, and the terms of buying around it."""

from datetime import date

import msgspec
import numpy as np
from numpy.typing import NDArray

from service.domain.answer import Assumed
from service.domain.architecture import Architecture
from service.domain.candidates import WeightChoice
from service.domain.engine import EngineBehaviour, EngineRequest
from service.domain.offer_terms import OfferTerms
from service.domain.quantization import Quantization
from service.domain.recommendation import Objective
from service.domain.work import Work
from service.domain.workload import Traffic


class Question(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What the search is asked: a model, its formats, an engine, a workload and the margins."""

    architecture: Architecture
    choices: tuple[WeightChoice, ...]
    kv_cache: Quantization
    behaviour: EngineBehaviour
    engine: EngineRequest
    draft: Architecture | None = None
    """Of the draft model that ``engine.speculative`` names."""
    work: Work
    headroom: float
    spare: float
    allowed: NDArray[np.bool_]
    """Accelerators that the caller lets in (one element each)."""
    max_gpus: float
    """Most accelerators of one replica, and of all instances together."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of the deployment beside production."""

    name: str
    replicas: float
    hours_per_month: float


class Ask(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """A whole recommendation request."""

    model: str
    """Id that the engine loads."""
    model_reference: object
    """The model as the caller named it, for replays."""
    model_assumptions: tuple[Assumed, ...]
    """What had to be assumed to read it; every answer about it lists this."""
    traffic: Traffic
    calls: float
    """Calls of the model for one request of a user."""
    question: Question
    smaller: tuple[WeightChoice, ...]
    """Weight formats to try on cards that are too small, in order of least harm."""
    objective: Objective
    terms: OfferTerms
    hours_per_month: float
    horizon_months: float
    environments: tuple[Environment, ...]
    max_monthly_usd: float
    limit: int
    evaluated_on: date
    with_offers: bool
    """List refused offers too."""
