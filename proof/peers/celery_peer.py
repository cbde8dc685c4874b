"""The chunk job on Celery: acks_late, reject_on_worker_lost, prefetch 1, chord, 30 s visibility, as its docs advise."""

import os
import sys
from pathlib import Path

from body import CHUNKS, chunk, join
from celery import Celery, chord

STORE, FOLDER = os.environ["FAULTS_STORE"], Path(os.environ["FAULTS_FOLDER"])
SEEN = {"visibility_timeout": 30, "unacked_restore_limit": 100}
app = Celery("faults", broker=STORE, backend=STORE)
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_transport_options=SEEN,
    result_backend_transport_options=SEEN,
    result_backend_always_retry=True,
    worker_cancel_long_running_tasks_on_connection_loss=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="chunk", autoretry_for=(Exception,), max_retries=5)
def one(n: int) -> None:
    chunk(FOLDER, n)


@app.task(name="join")
def last() -> None:
    join(FOLDER)


if sys.argv[1] == "submit":
    chord(one.s(n) for n in range(CHUNKS))(last.si())
else:
    app.worker_main(["worker", "-c", "1", "-n", f"{sys.argv[2]}@faults", "-l", "warning"])
