"""Catalog files in, immutable records and indexes out."""
