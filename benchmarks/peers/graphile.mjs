// No-op jobs on graphile-worker: run beside its node_modules, with nothing of ours.
//
// node graphile.mjs fill COUNT puts jobs in. drain COUNT says that it is ready, begins when it is told by a line,
// and prints [count, begin, end, cpu] when so many jobs are done.
import { createRequire } from "node:module";
import { once } from "node:events";

const { Logger, makeWorkerUtils, run } = createRequire(process.cwd() + "/")("graphile-worker");
const connectionString = process.env.PEER_URL;
const [what, count] = process.argv.slice(2);
// With a local queue, which releases before 0.17 lack, it is eight times as fast; the best of 24, 100, 500 at once.
const WORKER = { connectionString, concurrentJobs: 24, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0, maxPoolSize: 20 };
const logger = new Logger(() => (level, text) => {
  if (level === "error") console.error(text);
});

const now = () => Number(process.hrtime.bigint()) / 1e9; // the clock of Python's time.monotonic

async function fill() {
  const utils = await makeWorkerUtils({ connectionString, logger });
  await utils.migrate();
  const add = "select graphile_worker.add_job('noop', json_build_object('x', repeat('x', 100))) from generate_series(1, $1)";
  await utils.withPgClient((client) => client.query(add, [Number(count)]));
  await utils.release();
}

async function drain() {
  console.log("ready");
  await once(process.stdin, "data");
  const cpu = process.cpuUsage(), begin = now();
  let done = 0, end = begin, runner;
  const noop = async () => {
    done += 1;
    end = now();
  };
  runner = await run({ preset: { worker: WORKER }, logger, noHandleSignals: true, taskList: { noop } });
  let before = -1;
  while (done < Number(count) && (done === 0 || done !== before)) {
    before = done; // another process may do the rest
    await new Promise((later) => setTimeout(later, 500));
  }
  await runner.stop();
  const spent = process.cpuUsage(cpu);
  console.log(JSON.stringify([done, begin, end, (spent.user + spent.system) / 1e6]));
  process.exit(0);
}

await (what === "fill" ? fill() : drain());
