"""Sentences for people: one catalog per language, rendered at the edge of the service."""

from service.text.catalogs import CATALOGS, LANGUAGES, Catalog
from service.text.negotiation import DEFAULT_LANGUAGE, negotiate
from service.text.rendering import render

__all__ = ["CATALOGS", "DEFAULT_LANGUAGE", "LANGUAGES", "Catalog", "negotiate", "render"]
