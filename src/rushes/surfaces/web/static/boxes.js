// Boxes over the picture: who and what is seen at this moment; text only, never markup.
const KINDS = ["person", "object", "text"];

export class Boxes {
  constructor(player, video) {
    Object.assign(this, { player, video, place: player.root.querySelector("[data-boxes]"), on: false, rows: undefined });
    player.root.addEventListener("boxes", () => this.toggle());
    player.onTime((us) => this.on && this.show(us));
    new ResizeObserver(() => this.fit()).observe(player.root);
  }

  async toggle() {
    this.on = !this.on;
    this.player.press("boxes", this.on);
    this.place.replaceChildren();
    if (!this.on) return;
    this.rows ??= (await Promise.all(KINDS.map((kind) => this.read(kind)))).flat().sort((a, b) => a.start_us - b.start_us);
    this.fit();
    this.show(this.player.us);
  }

  async read(kind) {
    const rows = [];
    let next = `/api/v1/videos/${this.video}/lines?kind=${kind}&limit=500`;
    while (next) {
      const page = await fetch(next).then((answer) => answer.json()).catch(() => ({ items: [] }));
      rows.push(...page.items.filter((row) => row.box));
      next = page.next;
    }
    return rows;
  }

  // The picture is letterboxed in the element: boxes belong to the picture.
  fit() {
    const video = this.player.video;
    if (!video?.videoWidth) return;
    const scale = Math.min(video.clientWidth / video.videoWidth, video.clientHeight / video.videoHeight);
    const [width, height] = [video.videoWidth * scale, video.videoHeight * scale];
    Object.assign(this.place.style, { width: `${width}px`, height: `${height}px`, left: `${(video.clientWidth - width) / 2}px`, top: `${(video.clientHeight - height) / 2}px` });
  }

  show(us) {
    const now = (this.rows ?? []).filter((row) => row.start_us <= us && us < row.end_us);
    const key = now.map((row) => `${row.start_us}${row.text}`).join();
    if (key === this.key && this.place.childElementCount) return;
    this.key = key;
    this.place.replaceChildren(...now.map((row) => {
      const box = document.createElement("div");
      box.className = row.confidence < 0.6 ? "box unsure" : "box";
      const [left, top, width, height] = row.box.map((part) => `${part * 100}%`);
      Object.assign(box.style, { left, top, width, height });
      box.classList.toggle("high", row.box[1] < 0.05);
      if (row.kind !== "text") box.append(Object.assign(document.createElement("span"), { textContent: `${row.text.startsWith("per_") ? `Person ${row.text.slice(-4)}` : row.text} · ${row.confidence.toFixed(2)}` }));
      return box;
    }));
  }
}
