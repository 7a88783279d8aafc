# ruff: noqa: INP001 - a settings file, in no package
"""gunicorn settings of the service. Each lower-case global is a setting; names of our own start with an underscore.

Most come from the environment (see ``service/settings.py``); gunicorn's command line overrides them all.
"""

import os as _os
import shutil as _shutil
import sys as _sys
import tempfile as _tempfile

from gunicorn.workers.base import Worker as _Worker

from service.log import gunicorn_logging as _gunicorn_logging
from service.settings import SettingsError as _SettingsError
from service.settings import read_settings as _read_settings

try:
    _settings = _read_settings(_os.environ)
except _SettingsError as _error:
    _sys.exit(f"settings: {_error}")

if _settings.bind:
    bind = _settings.bind
workers = _settings.workers
worker_class = "asgi"

# Balancers keep idle connections for 60 s; gunicorn's 2 s would close them under a request on its way.
keepalive = 75
# A recommendation takes milliseconds: a worker that is silent this long is stuck.
timeout = 30
# Answers end in milliseconds; only idle connections, which gunicorn waits for too, would use a longer grace.
graceful_timeout = 5
# In memory, or the heartbeat's file stalls workers where /tmp is a slow disk.
worker_tmp_dir = "/dev/shm" if _os.path.isdir("/dev/shm") else None  # noqa: PTH112, S108 - no file of ours

# Its own limit is below our longest legal query, and it answers in plain text. The parser still ends a line at 1 MiB;
# the application refuses what is too long with a problem document (service/api/observability.py).
limit_request_line = 0

# On by default, it writes a socket under the home folder, which a container may not have.
control_socket_disable = True
logconfig_dict = _gunicorn_logging(_settings.log_level)

# Each worker loads the application itself, so that SIGHUP picks up a new release and new catalogs. Before any of them,
# the folder through which their metrics are summed: a fresh one per start, or counters of the last run would stay.
# SIGHUP reads this file again in the same process, and keeps the folder.
_prefix = f"llm-sizing-metrics-{_os.getpid()}-"
_metrics_folder = _os.environ.get("PROMETHEUS_MULTIPROC_DIR", "")
if not _os.path.basename(_metrics_folder).startswith(_prefix):  # noqa: PTH119 - a string in the environment
    _metrics_folder = _tempfile.mkdtemp(prefix=_prefix)
    _os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics_folder


def child_exit(server: object, worker: _Worker) -> None:  # noqa: ARG001 - gunicorn's signature
    """Forget the gauges of a worker that ended; its counters stay in the sum."""
    from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415 - only after the folder is named

    mark_process_dead(worker.pid)


def on_exit(server: object) -> None:  # noqa: ARG001 - gunicorn's signature
    """Remove the metrics' folder."""
    _shutil.rmtree(_metrics_folder, ignore_errors=True)
