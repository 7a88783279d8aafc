"""The ASGI application: ``gunicorn -c deploy/gunicorn.conf.py service.asgi:app``."""

import os

from service.app import create_app
from service.log import configure_logging
from service.settings import read_settings

settings = read_settings(os.environ)
configure_logging(settings.log_level)
app = create_app(settings)
