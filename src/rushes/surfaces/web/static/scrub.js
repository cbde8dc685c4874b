// Posters that show the film under the pointer; one picture at a time, the last one wins.
const STEPS = 20; // pictures over a poster's width

export function startScrubbing(root) {
  for (const poster of root.querySelectorAll("[data-scrub]")) scrub(poster);
}

function scrub(poster) {
  const picture = poster.querySelector("img");
  const first = picture.getAttribute("src");
  const time = poster.querySelector(".thumb-time");
  let line, shown = -1, loading = false, wanted = -1;

  async function show(step) {
    wanted = step;
    if (loading || step === shown) return;
    loading = true;
    const next = new Image();
    next.src = `/api/v1/videos/${poster.dataset.scrub}/frames/${Math.floor((poster.dataset.duration * step) / STEPS / 1000)}.jpg`;
    await next.decode().catch(() => {});
    loading = false;
    shown = step;
    if (line) picture.src = next.src;
    if (wanted !== step && line) show(wanted);
  }

  poster.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "mouse") return;
    const box = poster.getBoundingClientRect();
    const at = Math.min(0.999, Math.max(0, (event.clientX - box.left) / box.width));
    if (!line) poster.append(line = Object.assign(document.createElement("i"), { className: "thumb-line" }));
    line.style.left = `${at * 100}%`;
    show(Math.floor(at * STEPS));
  });
  poster.addEventListener("pointerleave", () => { line?.remove(); line = undefined; picture.src = first; shown = -1; });
}
