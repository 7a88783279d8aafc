"""The ASGI application: ``gunicorn -c deploy/gunicorn.conf.py service.asgi:app``."""

import os

from service.app import create_app
from service.settings import read_settings

app = create_app(read_settings(os.environ))
