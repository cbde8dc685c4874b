// What every page does with script: moments in the viewer's zone, toasts, keys, confirmations, and jobs as they change.
import { followJobs } from "./live.js";
import { startKeys } from "./keys.js";
import { showMoments } from "./moments.js";
import { startSearchBoxes } from "./complete.js";

showMoments(document);
startKeys();
startSearchBoxes();

for (const toast of document.querySelectorAll(".toast")) setTimeout(() => toast.remove(), 8000);

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.confirm;
  if (question && !window.confirm(question)) event.preventDefault();
});

const running = new Set();
const badge = document.querySelector("[data-running]");
let before = Number(badge?.querySelector("[data-running-count]").textContent || 0);
followJobs((job) => {
  const at_work = job.state === "chunking_complete";
  if (at_work === running.has(job.id)) return;
  at_work ? running.add(job.id) : running.delete(job.id);
  const count = Math.max(before, running.size);
  if (!badge || !count) return;
  badge.hidden = false;
  badge.querySelector("[data-running-count]").textContent = count;
});
