"""What a request may say and no number of the answer follows from yet: listed rather than silently ignored."""

from service.domain.answer import Assumed
from service.domain.message import Message
from service.domain.workload import Application, Targets


def not_modelled(targets: Targets | None, application: Application | None) -> tuple[Assumed, ...]:
    """A row for each given part that changes nothing, with the value given."""
    found: list[Assumed] = []
    if targets is not None and targets.availability is not None:
        found.append(Assumed("/targets/availability", targets.availability, Message("not_modelled_availability")))
    if application is not None and application.users_region is not None:
        found.append(Assumed("/application/users_region", application.users_region, Message("not_modelled_region")))
    return tuple(found)
