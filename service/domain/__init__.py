"""Pure sizing domain: no I/O, no clock, no environment, no language."""
