"""Cards that a log names: by kernel file names, device lists, nvidia-smi."""

import re

from service.domain.engine_logs.names import card_name
from service.domain.engine_logs.scan import first, hits

_PLACES = (
    ("device_name=", re.compile(r"([A-Za-z0-9_.-]{3,80}?)(?:\.json|,|'|\s)")),
    ("Device 0:", re.compile(r" ([^,\n]{3,80}),")),
    ("GPU 0:", re.compile(r" ([^(\n\\]{3,80}?)(?: \(UUID|\n|\\n|$)")),
    (
        "using device ",
        re.compile(r"(?:CUDA0|ROCm0|Vulkan0|Metal|MTL0|SYCL0) \(([^()\n]{3,80}(?:\([^()\n]{1,20}\)[^()\n]{0,20})?)\)"),
    ),
    ("found device: ", re.compile(r"([^\n]{3,80})")),
    ("|   0", re.compile(r"  (NVIDIA [A-Za-z0-9 -]{2,40}?|Tesla [A-Za-z0-9 -]{1,40}?) {2,}")),
)


def cards_in(text: str) -> tuple[str, ...]:
    """Names of the first card that each place gives, without repeats."""
    found: list[str] = []
    for marker, pattern in _PLACES:
        match = first(hits(text, marker, pattern))
        if match is not None:
            found += [name for name in card_name(match[1].strip()) if name not in found]
    return tuple(found)
