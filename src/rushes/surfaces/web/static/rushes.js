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

// How many jobs run: asked anew when one begins or ends, at most every two seconds.
const states = new Map();
const badge = document.querySelector("[data-running]");
let counting;
followJobs((job) => {
  if (states.get(job.id) === job.state) return;
  states.set(job.id, job.state);
  counting ??= setTimeout(count, 2000);
});

async function count() {
  counting = undefined;
  const answer = await fetch("/api/v1/jobs?state=chunking_complete&limit=100").catch(() => null);
  if (!answer?.ok) return;
  const { items } = await answer.json();
  badge.hidden = !items.length;
  badge.querySelector("[data-running-count]").textContent = items.length;
}
