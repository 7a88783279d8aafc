"""gunicorn settings of the service. Each lower-case global is a setting; names of our own start with an underscore.

Most come from the environment (see ``service/settings.py``); gunicorn's command line overrides them all.
"""

import os as _os
import shutil as _shutil
import sys as _sys
import tempfile as _tempfile

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
graceful_timeout = 20
# In memory, or the heartbeat's file stalls workers where /tmp is a slow disk.
worker_tmp_dir = "/dev/shm" if _os.path.isdir("/dev/shm") else None  # noqa: PTH112, S108 - no file of ours is put there

# On by default, it writes a socket under the home folder, which a container may not have.
control_socket_disable = True
logconfig_dict = _gunicorn_logging(_settings.log_level)

# Each worker loads the application itself, so that SIGHUP picks up a new release and new catalogs. Before any of them,
# the folder through which their metrics are summed: a fresh one per start, or counters of the last run would stay.
_metrics_folder = _tempfile.mkdtemp(prefix="llm-sizing-metrics-")
_os.environ["PROMETHEUS_MULTIPROC_DIR"] = _metrics_folder


def child_exit(server, worker) -> None:  # noqa: ANN001, ARG001 - gunicorn's signature
    """Forget the gauges of a worker that ended; its counters stay in the sum."""
    from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415 - after the folder is named

    mark_process_dead(worker.pid)


def on_exit(server) -> None:  # noqa: ANN001, ARG001 - gunicorn's signature
    """Remove the metrics' folder."""
    _shutil.rmtree(_metrics_folder, ignore_errors=True)
