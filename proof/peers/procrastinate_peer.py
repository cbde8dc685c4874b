"""The chunk job on procrastinate: retries, the documented rescue task, the join in the chunk's transaction."""

import asyncio
import os
import sys
from pathlib import Path

import procrastinate
import psycopg
from body import CHUNKS, chunk, join

STORE, FOLDER = os.environ["FAULTS_STORE"], Path(os.environ["FAULTS_FOLDER"])
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=STORE))
RETRY = procrastinate.RetryStrategy(max_attempts=5)


@app.task(name="chunk", retry=RETRY)
def one(n: int) -> None:
    chunk(FOLDER, n)
    with psycopg.connect(STORE) as db:  # the set of chunks that are done; whoever completes it starts the join, once
        db.execute("insert into fault_done values (%s) on conflict do nothing", (n,))
        db.execute("select from fault_join for update")
        (done,) = db.execute("select count(*) from fault_done").fetchone() or (0,)
        if done == CHUNKS and db.execute("update fault_join set begun = true where not begun").rowcount:
            db.execute(
                "select procrastinate_defer_jobs_v1(array[row('default', 'join', 0, null, null, '{}'::jsonb, null)"
                "::procrastinate_job_to_defer_v1])"
            )


@app.task(name="join", retry=RETRY)
def last() -> None:
    join(FOLDER)


@app.periodic(cron="* * * * * */2")
@app.task(name="rescue", queueing_lock="rescue", pass_context=True)
async def rescue(context: procrastinate.JobContext, timestamp: int) -> None:
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=6):
        await app.job_manager.retry_job(job)


async def submit() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        with psycopg.connect(STORE) as db:
            db.execute("create table fault_done (n int primary key)")
            db.execute("create table fault_join as select false as begun")
        for n in range(CHUNKS):
            await one.defer_async(n=n)


if sys.argv[1] == "submit":
    asyncio.run(submit())
else:
    with app.open():
        pass
    app.run_worker(concurrency=2, name=sys.argv[2], update_heartbeat_interval=2, stalled_worker_timeout=6)
