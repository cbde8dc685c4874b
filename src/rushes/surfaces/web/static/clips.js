// The selection: in and out by hand or by drag, a clip of it, a link to it.
import { ask, toast } from "./toast.js";
import { timecode } from "./words.js";

export class Selection {
  constructor(form, timeline, player, video) {
    Object.assign(this, { form, timeline, player, video });
    this.from = form.querySelector("[data-in]");
    this.to = form.querySelector("[data-out]");
    this.length = form.querySelector("[data-selection-length]");
    timeline.root.addEventListener("selected", (event) => this.show(event.detail));
    for (const field of [this.from, this.to]) field.addEventListener("change", () => this.typed());
    form.addEventListener("reset", () => setTimeout(() => timeline.select(0, 0)));
    form.addEventListener("submit", (event) => { event.preventDefault(); this.clip(); });
    for (const button of player.video ? form.querySelectorAll("[data-mark]") : []) {
      button.hidden = false; // a phone has neither keys nor a drag: a finger scrolls
      button.addEventListener("click", () => this.set(button.dataset.mark));
    }
    const copy = form.querySelector("[data-copy]");
    copy.hidden = false;
    copy.addEventListener("click", () => this.copy());
  }

  show(range) {
    this.from.value = range ? timecode(range[0], 3) : "";
    this.to.value = range ? timecode(range[1], 3) : "";
    const seconds = range ? (range[1] - range[0]) / 1e6 : 0;
    this.length.textContent = range ? `${seconds.toFixed(3)} s, ${Math.round(seconds / this.player.frame)} frames` : "";
  }

  typed() {
    const [from, to] = [micros(this.from.value), micros(this.to.value)];
    const wrong = Number.isFinite(from) && Number.isFinite(to) && to <= from;
    this.to.setAttribute("aria-invalid", String(wrong));
    if (Number.isFinite(from) && Number.isFinite(to) && !wrong) this.timeline.select(from, to);
  }

  set(edge) {
    const [from, to] = this.timeline.selected ?? [0, this.player.duration];
    const shown = this.player.shown; // fields hold milliseconds: the picture on screen is inside, its neighbours are not
    const [first, after] = [Math.floor(shown / 1000) * 1000, Math.ceil(shown / 1000 + 1) * 1000];
    if (edge === "in") this.timeline.select(first, to > first ? to : this.player.duration);
    else this.timeline.select(from < after ? from : 0, after);
  }

  async clip() {
    const [from, to] = [micros(this.from.value), micros(this.to.value)];
    if (!(to > from)) { toast("Set In and Out first: drag over the timeline, or press I and O.", { alarm: true }); return; }
    const { padding_ms: padding, proxy, subtitles } = this.form.elements; // the last two where there is such a thing
    const how = { padding_ms: Number(padding.value), proxy: proxy?.value === "true", subtitles: subtitles?.value ?? "" };
    const body = { video_id: this.video, t_start: from / 1e6, t_end: to / 1e6, ...how };
    const clip = await ask("POST", "/api/v1/clips", body);
    if (!clip) return;
    await ready(clip);
    this.form.dispatchEvent(new CustomEvent("cut", { bubbles: true }));
  }

  async copy() {
    const url = new URL(location.href);
    const [from, to] = this.timeline.selected ?? [this.player.us];
    url.searchParams.set("t", (from / 1e6).toFixed(3));
    to === undefined ? url.searchParams.delete("end") : url.searchParams.set("end", (to / 1e6).toFixed(3));
    url.searchParams.delete("clip");
    url.hash = "";
    await copyText(url.href);
  }
}

// Wait for a clip and offer it.
export async function ready(clip) {
  const waiting = clip.status === "done" ? undefined : toast("Cutting the clip.", { keep: true });
  let tries = 0;
  while (!["done", "failed", "cancelled", "cleared"].includes(clip.status)) {
    await new Promise((done) => setTimeout(done, tries < 10 ? 200 : 1000));
    tries += 1;
    if (tries === 20) waiting.querySelector("span").textContent = "The clip is waiting for a worker. Start one with: rushes worker";
    const answer = await fetch(`/api/v1/clips/${clip.clip_id}`).catch(() => null);
    if (answer?.ok) clip = await answer.json();
  }
  waiting?.remove();
  if (clip.status === "done") toast(`The clip is ready, ${(clip.t_end - clip.t_start).toFixed(1)} s.`, { href: clip.url, link: "Download", file: clip.name, keep: true });
  else toast(`The clip failed. ${clip.error ?? ""}`, { alarm: true });
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Link copied.");
  } catch {
    window.prompt("Link", text);
  }
}

function micros(text) {
  const parts = text.trim().split(":").map(Number);
  return text.trim() && parts.every(Number.isFinite) ? Math.round(parts.reduce((sum, part) => sum * 60 + part, 0) * 1e6) : NaN;
}
