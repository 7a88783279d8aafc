"""Commands: ``python -m service serve | openapi | examples | catalog``."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

import msgspec

from service.api.document import openapi_document
from service.api.examples import write_answers
from service.app import CATALOG, create_app
from service.catalog.bundle import bundle_of
from service.catalog.snapshot import PACKAGED, load_snapshot
from service.domain.errors import CatalogError
from service.settings import Settings, SettingsError, read_settings
from service.store import StoreError, open_store

_GUNICORN_SETTINGS = Path(__file__).resolve().parents[1] / "deploy" / "gunicorn.conf.py"


def serve(arguments: argparse.Namespace) -> int:
    """Become gunicorn with the service's settings; further arguments are gunicorn's."""
    if not _GUNICORN_SETTINGS.is_file():
        sys.stderr.write(
            f"{_GUNICORN_SETTINGS} is missing: serve from a checkout, or run gunicorn service.asgi:app -k asgi\n"
        )
        return 1
    command = [sys.executable, "-m", "gunicorn", "-c", str(_GUNICORN_SETTINGS), *arguments.gunicorn, "service.asgi:app"]
    os.execv(sys.executable, command)  # noqa: S606 - no shell, our own interpreter
    return 0


def openapi(_: argparse.Namespace) -> int:
    """Write the OpenAPI document to standard output, in a form that diffs well."""
    document = openapi_document(create_app(read_settings(os.environ)))
    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")
    return 0


def examples(arguments: argparse.Namespace) -> int:
    """Ask the service every example of a folder and write its answers into the files."""
    for path in write_answers(create_app(read_settings(os.environ)), arguments.folder):
        sys.stdout.write(f"{path}\n")
    return 0


def catalog(arguments: argparse.Namespace) -> int:
    """Check a catalog folder, and publish it to the workers that share the store."""
    try:
        snapshot = load_snapshot(arguments.folder)
    except CatalogError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    counted = f"{len(snapshot.models)} models, {len(snapshot.accelerators)} accelerators, {len(snapshot.offers)} offers"
    sys.stdout.write(f"{arguments.folder}: revision {snapshot.catalog_revision}, {counted}\n")
    if arguments.action == "publish":
        try:
            asyncio.run(publish_catalog(read_settings(os.environ), arguments.folder, snapshot.catalog_revision))
        except StoreError as error:
            sys.stderr.write(f"not published: {error}\n")
            return 1
        sys.stdout.write("published\n")
    return 0


async def publish_catalog(settings: Settings, folder: Path, revision: str) -> None:
    """Make a folder's catalogs the current revision of the store."""
    store = open_store(settings.redis_url, settings.store_path)
    try:
        await store.publish(CATALOG, revision, bundle_of(folder))
    finally:
        await store.aclose()


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="python -m service", description="LLM sizing service")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser(
        "serve", help="serve over HTTP; further arguments are gunicorn's, e.g. -b 0.0.0.0:8000"
    )
    command.set_defaults(run=serve)
    command = commands.add_parser("openapi", help="print the OpenAPI document")
    command.set_defaults(run=openapi)
    command = commands.add_parser("examples", help="write the answers of openapi/examples anew")
    command.add_argument("folder", type=Path, nargs="?", default=Path("openapi/examples"))
    command.set_defaults(run=examples)
    command = commands.add_parser("catalog", help="check a catalog folder, or publish it to the store")
    command.add_argument("action", choices=("check", "publish"))
    command.add_argument("folder", type=Path, nargs="?", default=PACKAGED)
    command.set_defaults(run=catalog)
    arguments, further = parser.parse_known_args()
    if further and arguments.run is not serve:
        parser.error(f"unrecognized arguments: {' '.join(further)}")
    arguments.gunicorn = further
    try:
        return int(arguments.run(arguments))
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
