"""Whole instances: how many replicas an instance holds, how many instances are paid, which accelerators stay idle."""

import msgspec

from service.domain.numeric import Flag, Number, ceil, floor, greater


class Packing(msgspec.Struct, frozen=True):
    """Replicas packed into what an offer sells; each a float or an array of candidate x offer pairs."""

    fits: Flag
    """False where one replica needs more accelerators than the instance has (``needs_multi_node``)."""
    replicas_per_instance: Number
    instances: Number
    idle_gpus: Number
    """Paid accelerators that carry no replica."""


def pack(replicas: Number, gpus_per_replica: Number, gpus_per_instance: Number) -> Packing:
    """Pack ``replicas`` (>= 1) into instances, never splitting a replica over two of them.

    A replica larger than the instance gives ``fits`` False; its other numbers then mean nothing but stay finite.
    """
    per_instance = floor(gpus_per_instance / gpus_per_replica)
    instances = ceil(replicas / greater(per_instance, 1.0))
    return Packing(
        fits=per_instance >= 1.0,
        replicas_per_instance=per_instance,
        instances=instances,
        idle_gpus=instances * gpus_per_instance - replicas * gpus_per_replica,
    )
