// The timeline: lanes in film time that zoom and scroll, a playhead, hits, and a selection that is dragged out.
import { timecode } from "./words.js";

const STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];

export class Timeline {
  constructor(root, player, data, video) {
    Object.assign(this, { root, player, data, video, zoom: 1, duration: data.duration_us || 1 });
    this.place = root.querySelector("[data-lanes]");
    this.place.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.25 : 0.8);
    }, { passive: false });
    this.draw();
    player.onTime((us) => this.show(us));
    root.querySelector("[data-zoom]").hidden = false;
    for (const button of root.querySelectorAll("[data-zoom-by]")) button.addEventListener("click", () => this.zoomBy(Number(button.dataset.zoomBy)));
    new ResizeObserver(() => this.layout()).observe(this.place);
  }

  draw() {
    this.track = make("div", "track");
    this.ruler = make("div", "ruler");
    this.head = make("div", "playhead");
    this.range = make("div", "range");
    this.range.append(make("i", "edge from"), make("i", "edge to"));
    this.range.hidden = true;
    const shots = { label: "Shots", kind: "shot", spans: this.data.shots.map(([a, b]) => [a, b, true, ""]) };
    const rows = [];
    for (const lane of shots.spans.length ? [shots, ...this.data.lanes] : this.data.lanes) rows.push(this.row(lane.label, lane.kind, lane.spans));
    const over = make("div", "over");
    over.append(this.range);
    this.track.append(this.ruler, ...rows, over, this.head);
    for (const [start] of this.data.hits) this.ruler.append(this.put(make("i", "hit-mark"), start));
    this.place.replaceChildren(this.track);
    this.track.addEventListener("pointerdown", (event) => this.press(event));
    this.layout();
  }

  // What is known by now; zoom, place and selection stay.
  renew(data) {
    const left = this.place.scrollLeft;
    Object.assign(this, { data, width: 0 });
    this.draw();
    if (this.selected) this.select(...this.selected, false);
    this.place.scrollLeft = left;
    this.show(this.player.us);
  }

  row(label, kind, spans) {
    const lane = make("div", `lane ${kind}`);
    const name = make("span", "lane-name");
    name.textContent = label;
    const list = make("ul", "lane-spans");
    list.setAttribute("aria-label", label);
    for (const [start, end, sure, text] of spans.slice(0, 2000)) {
      const item = this.put(make("li", sure ? "stretch" : "stretch unsure"), start, Math.max(end, start + 1));
      item.dataset.start = start;
      item.dataset.end = end;
      item.title = `${timecode(start, 1)} to ${timecode(end, 1)}${text ? `: ${text}` : ""}`;
      if (text) item.append(Object.assign(document.createElement("span"), { textContent: text }));
      else item.append(Object.assign(document.createElement("span"), { className: "sr", textContent: item.title }));
      list.append(item);
    }
    lane.append(name, list);
    return lane;
  }

  put(item, start, end) {
    item.style.left = `${(100 * start) / this.duration}%`;
    if (end !== undefined) item.style.width = `${(100 * (end - start)) / this.duration}%`;
    return item;
  }

  // What depends on how many pixels a second has: ticks of the ruler, pictures of shots.
  layout() {
    this.track.style.setProperty("--zoom", this.zoom);
    const width = this.ruler.clientWidth || 1;
    if (width === this.width) return;
    this.width = width;
    const second = width / (this.duration / 1e6);
    const step = STEPS.find((seconds) => seconds * second >= 84) ?? 7200;
    for (const tick of this.ruler.querySelectorAll(".ruler-time")) tick.remove();
    for (let at = 0; at * 1e6 < this.duration && at / step < 2000; at += step) {
      const tick = this.put(make("span", "ruler-time"), at * 1e6);
      tick.textContent = timecode(at * 1e6, step < 1 ? 1 : 0);
      this.ruler.append(tick);
    }
    for (const shot of this.track.querySelectorAll(".lane.shot li")) this.picture(shot, second);
  }

  picture(shot, second) {
    const [start, end] = [Number(shot.dataset.start), Number(shot.dataset.end)];
    if (shot.querySelector("img") || ((end - start) / 1e6) * second < 18) return;
    const image = Object.assign(new Image(), { loading: "lazy", alt: "", draggable: false });
    image.src = `/api/v1/videos/${this.video}/frames/${Math.floor((start + end) / 2000)}.jpg`;
    shot.append(image);
  }

  at(event) {
    const box = this.ruler.getBoundingClientRect();
    return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * this.duration;
  }

  press(event) {
    if (event.button || event.target.closest(".lane-name")) return;
    const begun = event.clientX;
    const edge = event.target.closest(".edge");
    const [from, to] = this.selected ?? [];
    const fixed = edge ? (edge.classList.contains("from") ? to : from) : this.at(event);
    let drags = Boolean(edge);
    const move = (next) => {
      drags ||= Math.abs(next.clientX - begun) > 4;
      if (drags) this.select(Math.min(fixed, this.at(next)), Math.max(fixed, this.at(next)));
    };
    const over = new AbortController(); // also where a finger turns out to scroll
    const up = (last) => {
      over.abort();
      if (!drags && last.type === "pointerup") this.player.seek(fixed);
    };
    addEventListener("pointermove", move, { signal: over.signal });
    for (const name of ["pointerup", "pointercancel"]) addEventListener(name, up, { signal: over.signal });
    event.preventDefault();
  }

  select(from, to, told = true) {
    this.selected = to > from ? [Math.round(from), Math.round(to)] : undefined;
    this.range.hidden = !this.selected;
    if (this.selected) this.put(this.range, ...this.selected);
    if (told) this.root.dispatchEvent(new CustomEvent("selected", { detail: this.selected }));
  }

  zoomBy(by) {
    const at = this.player.us;
    const next = Math.max(1, Math.min(200, this.zoom * by));
    if (next === this.zoom) return;
    this.zoom = next;
    this.layout();
    this.place.scrollLeft = (at / this.duration) * this.ruler.clientWidth - this.place.clientWidth / 2;
  }

  show(us) {
    this.head.style.left = `calc(var(--names) + (100% - var(--names)) * ${us / this.duration})`;
    if (this.zoom === 1 || this.player.video?.paused) return;
    const x = (us / this.duration) * this.ruler.clientWidth - this.place.scrollLeft;
    if (x < 0 || x > this.place.clientWidth - 160) this.place.scrollLeft += x - 80;
  }
}

function make(kind, name) {
  return Object.assign(document.createElement(kind), { className: name });
}
