"""Hugging Face ``config.json`` to the domain's ``Architecture``."""

from service.catalog.hf.architecture import architecture_from_config
from service.catalog.hf.fault import ConfigError

__all__ = ["ConfigError", "architecture_from_config"]
