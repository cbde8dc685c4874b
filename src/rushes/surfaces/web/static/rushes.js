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

// Menus close on Esc, on a click elsewhere and when something in them was chosen.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest("a")) menu.open = false;
  }
});
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// How many jobs are in progress: asked again when one begins or ends, at most every two seconds.
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
  const answer = await fetch("/jobs/open").catch(() => null);
  if (!answer?.ok) return;
  const open = await answer.json(); // "" for none
  badge.hidden = !open;
  badge.querySelector("[data-running-count]").textContent = open;
}
