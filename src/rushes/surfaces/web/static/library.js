// The library: bulk choice, and tiles that change while their job runs.
import { followJobs } from "./live.js";
import { onKeys } from "./keys.js";
import { startScrubbing } from "./scrub.js";
import { timecode } from "./words.js";

const bar = document.querySelector("[data-bulk]");
const boxes = [...document.querySelectorAll("[data-choose]")];

function count() {
  const chosen = boxes.filter((box) => box.checked);
  bar.classList.toggle("empty-choice", !chosen.length);
  bar.querySelector("[data-bulk-count]").textContent = `${chosen.length} selected`;
  bar.querySelector("[data-bulk-length]").textContent = timecode(chosen.reduce((sum, box) => sum + Number(box.dataset.us), 0));
  for (const box of boxes) box.closest("[data-video]").classList.toggle("chosen", box.checked);
}

for (const box of boxes) box.addEventListener("change", count);
bar?.addEventListener("reset", () => setTimeout(count));
if (bar) count();

onKeys({
  x: () => document.activeElement.closest("[data-video]")?.querySelector("[data-choose]")?.click(),
  Escape: () => bar?.reset(),
});

const drawer = document.querySelector("[data-drawer]");
const wide = matchMedia("(min-width: 1280px)");
const fit = () => { if (drawer) drawer.open = wide.matches; };
wide.addEventListener("change", fit);
fit();

startScrubbing(document);

const known = new Set([...document.querySelectorAll("[data-job]")].map((tile) => tile.dataset.job));
followJobs((job) => {
  const tile = document.querySelector(`[data-job="${CSS.escape(job.id)}"]`);
  if (!tile) {
    if (job.video && !known.has(job.id) && job.recipe !== "trial") document.querySelector("[data-news]")?.removeAttribute("hidden");
    return;
  }
  const words = tile.querySelector(".stages > span:last-child");
  const percent = job.word === "running" && job.counts.total ? `, ${Math.floor((100 * job.counts.done) / job.counts.total)} %` : "";
  words.textContent = job.word + percent;
  if (job.word === "done") {
    for (const dot of tile.querySelectorAll(".dot.now, .dot.wait")) dot.className = "dot done";
  }
});
