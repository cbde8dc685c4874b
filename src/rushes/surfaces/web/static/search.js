// Search: walk through hits by key, cut one, copy its link.
import { copyText, ready } from "./clips.js";
import { onKeys } from "./keys.js";
import { ask } from "./toast.js";

const hits = [...document.querySelectorAll("[data-hit]")];
const count = document.querySelector("[data-hit-count]");
let at = -1;

function choose(next) {
  if (!hits.length) return;
  hits[at]?.classList.remove("chosen-hit");
  at = Math.max(0, Math.min(hits.length - 1, next));
  hits[at].classList.add("chosen-hit");
  hits[at].querySelector(".hit-do a").focus({ preventScroll: true });
  hits[at].scrollIntoView({ block: "nearest" });
  count.hidden = false;
  count.textContent = `hit ${at + 1} of ${hits.length} here`;
}

async function clip(form) {
  const [start, end, padding] = ["start", "end", "padding_ms"].map((name) => Number(form.elements[name].value));
  const made = await ask("POST", "/api/v1/clips", { video_id: form.dataset.video, t_start: start, t_end: end, padding_ms: padding });
  if (made) await ready(made);
}

onKeys({
  n: () => choose(at + 1),
  p: () => choose(at - 1),
  c: () => at >= 0 && clip(hits[at].querySelector("[data-clip-form]")),
  y: () => at >= 0 && copyText(new URL(hits[at].dataset.play, location.href).href),
});

for (const form of document.querySelectorAll("[data-clip-form]")) form.addEventListener("submit", (event) => { event.preventDefault(); clip(form); });
for (const link of document.querySelectorAll("[data-copy-link]")) link.addEventListener("click", (event) => { event.preventDefault(); copyText(link.href); });

const drawer = document.querySelector("[data-drawer]");
const wide = matchMedia("(min-width: 1280px)");
const fit = () => { if (drawer) drawer.open = wide.matches; };
wide.addEventListener("change", fit);
fit();
