"""Commands: ``python -m service serve`` and ``python -m service openapi``."""

import argparse
import os
import sys
from pathlib import Path

import msgspec

from service.api.document import openapi_document
from service.app import create_app
from service.settings import SettingsError, read_settings

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
