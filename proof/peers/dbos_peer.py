"""The chunk job on DBOS: a parent workflow, a queue, steps with retries, an executor id for each worker."""

import os
import sys
import threading
from pathlib import Path

from body import CHUNKS, chunk, join
from dbos import DBOS, DBOSClient, DBOSConfig, run_dbos_database_migrations

STORE, FOLDER = os.environ["FAULTS_STORE"], Path(os.environ["FAULTS_FOLDER"])


@DBOS.step(retries_allowed=True, max_attempts=5)
def one_step(n: int) -> None:
    chunk(FOLDER, n)


@DBOS.step(retries_allowed=True, max_attempts=5)
def last_step() -> None:
    join(FOLDER)


@DBOS.workflow(name="chunk")
def one(n: int) -> None:
    one_step(n)


@DBOS.workflow(name="parent")
def parent() -> None:
    for handle in [DBOS.enqueue_workflow("chunks", one, n) for n in range(CHUNKS)]:
        handle.get_result()
    last_step()


def work(name: str) -> None:
    config = DBOSConfig(name="faults", system_database_url=STORE, executor_id=name, application_version="1")
    DBOS(config=config)
    DBOS.launch()
    DBOS.register_queue("chunks", worker_concurrency=1, polling_interval_sec=0.2)
    DBOS.register_queue("parents", polling_interval_sec=0.2)
    threading.Event().wait()


if sys.argv[1] == "submit":
    run_dbos_database_migrations(STORE)
    client = DBOSClient(system_database_url=STORE)
    client.enqueue({"workflow_name": "parent", "queue_name": "parents", "app_version": "1", "workflow_id": "job"})
    client.destroy()
else:
    work(sys.argv[2])
