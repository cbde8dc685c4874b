// The first page while jobs run: bars and ranges change in place, once a second at most.
import { followJobs } from "./live.js";
import { showMoments } from "./moments.js";
import { startScrubbing } from "./scrub.js";
import { timeRange } from "./words.js";

const due = new Set();
let shown, changing;
begin();

// The page as it is now, without leaving it: the stream of changes stays open.
async function change() {
  changing = undefined;
  const page = new DOMParser().parseFromString(await fetch("/").then((answer) => answer.text()), "text/html");
  document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
  begin();
}

function begin() {
  shown = new Set([...document.querySelectorAll("[data-running-job]")].map((one) => one.dataset.runningJob));
  showMoments(document);
  startScrubbing(document);
  const drop = document.querySelector("[data-drop]");
  drop?.addEventListener("dragover", () => drop.classList.add("over"));
  drop?.addEventListener("dragleave", () => drop.classList.remove("over"));
}

followJobs((job) => {
  if (shown.has(job.id)) due.add(job.id);
  const begins = job.state === "chunking_complete" && !shown.has(job.id) && shown.size < 3;
  const ends = shown.has(job.id) && ["completed", "failed", "cancelled"].includes(job.state);
  if (begins || ends) changing ??= setTimeout(change, 700);
});

setInterval(async () => {
  for (const id of due) {
    due.delete(id);
    const answer = await fetch(`/api/v1/jobs/${id}/progress`).catch(() => null);
    if (answer?.ok) show(id, await answer.json());
  }
}, 1000);

function show(id, progress) {
  const place = document.querySelector(`[data-running-job="${CSS.escape(id)}"]`);
  if (!place) return;
  for (const stage of progress.stages) {
    const row = place.querySelector(`[data-stage="${CSS.escape(stage.stage)}"]`);
    if (!row) continue;
    const [done, , now] = row.querySelectorAll("rect");
    done.setAttribute("width", stage.done);
    now.setAttribute("x", stage.done);
    now.setAttribute("width", Math.max(stage.running, stage.active * 0.4));
    row.querySelector("[data-figures]").textContent = `${stage.done} / ${stage.total}`;
    row.querySelector("[data-left]").textContent = stage.done === stage.total ? "done" : stage.remaining ? timeRange(stage.remaining) : stage.active ? "running" : "waiting";
  }
  place.querySelector("[data-remaining]").textContent = timeRange(progress.remaining);
}

for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
addEventListener("drop", (event) => { if (event.dataTransfer?.files.length) location.assign("/add"); });
