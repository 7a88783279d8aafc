"""How many copies of a deployment a load needs: for the load itself, for headroom, and spares for failure."""

import msgspec

from service.domain.numeric import Number, ceil, greater


class ReplicaCount(msgspec.Struct, frozen=True):
    """Replicas by purpose; each a float or an array of candidates (whole numbers)."""

    for_load: Number
    headroom: Number
    """Added so that the load may grow by the headroom share and the targets still hold."""
    spare: Number
    """Carry no planned load: stand in when one fails or is updated."""

    @property
    def serving(self) -> Number:
        """Replicas that share the planned load."""
        return self.for_load + self.headroom

    @property
    def total(self) -> Number:
        """Replicas to pay for."""
        return self.for_load + self.headroom + self.spare


_WHOLE = 1.0 - 1e-12
"""The last bits of a quotient are no reason for one more replica."""


def replicas_for(load: Number, most_per_replica: Number, headroom: float, spare: float) -> ReplicaCount:
    """Copies for ``load``, where one replica carries ``most_per_replica`` of it under the targets (same unit, > 0).

    ``headroom`` is the share by which the load may exceed the plan (0.3: 30 %).
    """
    for_load = greater(ceil(load / most_per_replica * _WHOLE), 1.0)
    with_headroom = greater(ceil(load * (1.0 + headroom) / most_per_replica * _WHOLE), 1.0)
    return ReplicaCount(for_load=for_load, headroom=with_headroom - for_load, spare=spare)
