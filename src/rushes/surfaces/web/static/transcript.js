// The transcript: the current line and word, find, and correction in place.
import { ask, toast } from "./toast.js";

export class Transcript {
  constructor(root, player, video) {
    this.root = root;
    this.player = player;
    this.video = video;
    this.words = new Map();
    this.follows = true;
    this.read();
    this.listener = (us) => this.show(us);
    player.onTime(this.listener);
    root.closest("[data-panel]").addEventListener("wheel", () => { this.follows = false; setTimeout(() => { this.follows = true; }, 4000); }, { passive: true });
    this.findBox();
    root.addEventListener("click", (event) => {
      const edit = event.target.closest("[data-edit]");
      if (edit) { event.preventDefault(); this.edit(edit.closest("li")); }
      else if (event.target.closest("[data-text]") && getSelection().isCollapsed) this.player.seek(this.under(event));
    });
  }

  // The moment of the word under the pointer; of its line where words are not known.
  under(event) {
    const text = event.target.closest("[data-text]");
    const start = Number(text.closest("li").dataset.start);
    const words = this.words.get(start);
    const caret = document.caretRangeFromPoint?.(event.clientX, event.clientY);
    if (!caret || !text.contains(caret.startContainer) || words?.map((word) => word[0]).join(" ") !== text.textContent) return start;
    const before = document.createRange();
    before.setStart(text, 0);
    before.setEnd(caret.startContainer, caret.startOffset);
    return (words[before.toString().split(" ").length - 1] ?? words.at(-1))[1];
  }

  stop() { this.player.listeners.delete(this.listener); }

  async read() {
    this.lines = [...this.root.querySelectorAll("li[data-start]")].map((place) => ({ place, start: Number(place.dataset.start), end: Number(place.dataset.end) }));
    let next = `/api/v1/videos/${this.video}/lines?kind=speech&limit=500`;
    while (next && this.lines.length) {
      const page = await fetch(next).then((answer) => answer.json()).catch(() => ({ items: [] }));
      for (const line of page.items) if (line.words.length) this.words.set(line.start_us, line.words);
      next = page.next;
    }
    if (this.player.video) this.root.classList.add("playable"); // from now on a click on a word goes there
  }

  at(us) { return this.lines.findLast((line) => line.start <= us && us < line.end + 400000); }

  show(us) {
    const line = this.at(us);
    if (line !== this.current) {
      if (this.current) this.rest(this.current);
      this.current = line;
      if (line) this.enter(line);
    }
    if (!line?.spans) return;
    for (const [span, start, end] of line.spans) span.classList.toggle("now", start <= us && us < end);
  }

  enter(line) {
    line.place.classList.add("current");
    line.place.setAttribute("aria-current", "true");
    const panel = line.place.closest("[data-panel]");
    if (this.follows && !panel.hidden && !panel.contains(document.activeElement)) {
      const top = line.place.offsetTop - panel.clientHeight / 3;
      panel.scrollTo({ top, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
    }
    const text = line.place.querySelector("[data-text]");
    const words = this.words.get(line.start);
    if (!text || !words || line.spans || words.map((word) => word[0]).join(" ") !== text.textContent) return;
    const found = new Set([...text.querySelectorAll("mark")].flatMap((mark) => mark.textContent.split(" ")));
    line.spans = words.map(([word, start, end, sure]) => {
      const span = document.createElement(found.has(word) || found.has(bare(word)) ? "mark" : "span");
      span.textContent = word;
      if (sure < 0.5) span.className = "unsure";
      return [span, start, end];
    });
    text.replaceChildren(...line.spans.flatMap(([span], n) => (n ? [" ", span] : [span])));
  }

  rest(line) {
    line.place.classList.remove("current");
    line.place.removeAttribute("aria-current");
    for (const [span] of line.spans ?? []) span.classList.remove("now");
  }

  edit(place = this.current?.place) {
    if (!place || place.querySelector("form.correct")) return;
    const text = place.querySelector("[data-text]");
    const form = document.createElement("form");
    form.className = "correct";
    const area = Object.assign(document.createElement("textarea"), { name: "text", rows: 3, value: text.textContent });
    area.setAttribute("aria-label", "Transcript line");
    const keep = Object.assign(document.createElement("button"), { className: "button primary small", textContent: "Save" });
    const leave = Object.assign(document.createElement("button"), { type: "button", className: "button small", textContent: "Cancel" });
    const row = Object.assign(document.createElement("div"), { className: "row" });
    row.append(keep, leave);
    form.append(area, row);
    const close = () => { form.remove(); text.hidden = false; place.querySelector("[data-edit]").focus(); };
    leave.addEventListener("click", close);
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") close();
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); form.requestSubmit(); }
    });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const said = area.value.split(/\s+/).filter(Boolean).join(" ");
      const body = { video_id: this.video, start_us: Number(place.dataset.start), end_us: Number(place.dataset.end), kind: "speech", text: said };
      if (await ask("POST", "/api/v1/corrections", body)) {
        text.textContent = said || "(nothing)";
        this.words.delete(body.start_us);
        this.mark(place);
        this.player.renewCaptions();
        toast("Corrected. Search and subtitles are updated.");
        close();
      }
    });
    text.hidden = true;
    text.after(form);
    area.focus();
  }

  mark(place) {
    const end = place.querySelector(".line-end");
    if (end.querySelector(".badge")) return;
    end.prepend(Object.assign(document.createElement("span"), { className: "badge", textContent: "edited" }));
  }

  findBox() {
    const box = document.querySelector("[data-find]");
    if (!this.lines.length) return;
    box.hidden = false;
    box.querySelector("input").addEventListener("input", (event) => {
      const wanted = event.target.value.trim().toLocaleLowerCase();
      for (const { place } of this.lines) place.hidden = Boolean(wanted) && !place.textContent.toLocaleLowerCase().includes(wanted);
      const none = document.querySelector("[data-find-none]");
      none.hidden = !wanted || this.lines.some(({ place }) => !place.hidden);
      none.textContent = none.hidden ? "" : `Nothing in this transcript contains “${event.target.value.trim()}”.`;
    });
  }
}

function bare(word) {
  return word.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
}
