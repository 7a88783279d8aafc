"""Units of the service: bytes, tokens, seconds, US dollars."""

KIB = 1024
MIB = 1024**2
GIB = 1024**3
GB = 10**9
TOKENS_PER_MILLION = 1_000_000
SECONDS_PER_HOUR = 3600.0
MS_PER_S = 1000.0
HOURS_PER_MONTH = 730.0
"""Mean hours of a month (8,760 / 12): the default when the caller gives none."""
