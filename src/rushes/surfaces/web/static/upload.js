// Adding films: what was chosen is looked at here (length, picture, already there?), then sent in parts that survive
// a reload, a pause, a lost line and a restart of the server (tus 1.0: HEAD tells how much is there). Where films lie
// in a bucket its parts go directly there, by addresses that the server signs; it asks the bucket what has come.
import { Sha256, base64, hex, sha256 } from "./sha256.js";
import { plural, size, timecode, timeRange } from "./words.js";

const WAIT = [500, 1000, 2000, 5000, 10000]; // milliseconds before the next try when the line is lost
const TUS = { "Tus-Resumable": "1.0.0" };
const list = document.querySelector("[data-sending]");
const PART = Number(list?.dataset.part);
const ABREAST = 3; // parts on their way to the bucket at once
const start = document.querySelector("[data-start]");
const wish = document.querySelector("[data-wish]");
const files = [];

class Sending {
  constructor(file) {
    this.file = file;
    this.direct = list.dataset.direct !== undefined;
    this.state = "new"; // new, sending, paused, lost, here, refused, arrived
    this.sent = 0;
    this.row = document.getElementById("file").content.cloneNode(true).firstElementChild;
    this.row.querySelector("[data-name]").textContent = file.name;
    this.at("[data-pause]").addEventListener("click", () => (this.state === "sending" ? this.pause() : this.run()));
    this.at("[data-drop-file]").addEventListener("click", () => this.drop());
    this.at("[data-drop-file]").setAttribute("aria-label", `Discard ${file.name}`);
    this.show();
  }

  at(what) { return this.row.querySelector(what); }

  get mark() { return markOf(this.file); }

  get place() { return localStorage.getItem(this.mark); }

  show(note, sent = this.sent) {
    const words = { new: "ready", sending: "uploading", paused: "paused", lost: "connection lost", here: "already in the library", refused: "refused", arrived: "uploaded" };
    const badge = this.at("[data-state]");
    badge.textContent = words[this.state];
    badge.className = `badge ${{ sending: "now", refused: "alarm", arrived: "done", here: "done" }[this.state] ?? ""}`;
    this.at("[data-progress]").value = this.state === "arrived" ? 1 : sent / (this.file.size || 1);
    this.at("[data-progress]").hidden = this.state === "new" || this.state === "here";
    this.at("[data-progress]").setAttribute("aria-label", `${this.file.name} uploaded`);
    this.at("[data-amount]").textContent = sent && this.state !== "arrived" ? `${size(sent)} of ${size(this.file.size)}` : size(this.file.size);
    if (note !== undefined) this.at("[data-note]").textContent = note;
    this.showButtons();
    tell();
  }

  showButtons() {
    const pause = this.at("[data-pause]");
    const can = { sending: "Pause", paused: "Continue", lost: "Continue" }[this.state];
    pause.hidden = !can;
    pause.setAttribute("aria-label", `${can} ${this.file.name}`);
    if (can) pause.replaceChildren(document.getElementById(can === "Pause" ? "sign-pause" : "sign-play").content.cloneNode(true));
  }

  open(href, word) {
    const link = this.at("[data-open]");
    link.href = href;
    link.textContent = word;
    link.hidden = false;
  }

  pause() {
    this.state = "paused";
    this.stop?.abort();
    this.show("What was uploaded is kept for 7 days.");
  }

  async run() {
    this.wake?.();
    this.state = "sending";
    this.show("");
    this.sends ??= this.keepSending().finally(() => { this.sends = undefined; });
    await this.sends;
  }

  async keepSending() {
    for (let tries = 0; this.state === "sending" || this.state === "lost"; tries += 1) {
      try {
        await this.send(() => { tries = 0; });
      } catch (error) {
        if (error instanceof Problem) this.refuse(error.message);
        else if (this.state === "sending" || this.state === "lost") await this.wait(tries, error);
      }
    }
  }

  async wait(tries, error) {
    if (error instanceof Unreached && this.parts && !this.sent && tries > 1 && navigator.onLine) await this.leaveBucket().catch(() => {});
    this.state = "lost";
    this.show("Connection lost. What was uploaded is kept; the upload continues automatically.");
    await new Promise((go) => { this.wake = go; setTimeout(go, WAIT[Math.min(tries, WAIT.length - 1)]); });
  }

  refuse(why) {
    this.state = "refused";
    localStorage.removeItem(this.mark);
    this.show(why);
  }

  async send(onPart) {
    let offset = (await this.resume()) ?? (await this.begin());
    this.meter = new Meter(this.sent = offset);
    if (this.parts) return this.sendStraight(onPart);
    while (offset < this.file.size) {
      const next = await this.part(offset);
      if (this.state === "lost") this.state = "sending";
      onPart();
      offset = this.sent = next;
      if (this.state !== "sending") return;
      this.progress();
    }
    this.arrive();
  }

  // Bytes, percent and speed, also inside a part; four times a second at most.
  progress(under = 0) {
    const now = performance.now();
    if (this.state !== "sending" || (under && now - (this.told ?? 0) < 250)) return;
    this.told = now;
    const sent = Math.min(this.sent + under, this.file.size);
    const rate = this.meter.rate(sent);
    this.show(`${Math.floor((100 * sent) / this.file.size)} %${rate ? `, ${size(rate)}/s` : ""}`, sent);
  }

  arrive() {
    this.state = "arrived";
    localStorage.removeItem(this.mark);
    this.open(`/jobs/${this.job}`, "Open job");
    this.show("Uploaded. The job starts when a worker is free.");
  }

  async resume() {
    if (!this.place) return undefined;
    const answer = await fetch(this.place, { method: "HEAD", headers: TUS, cache: "no-store" });
    if (answer.status >= 500) throw new Error("away");
    if (!answer.ok) {
      localStorage.removeItem(this.mark);
      return undefined;
    }
    this.begun(answer);
    const offset = Number(answer.headers.get("Upload-Offset"));
    const received = Number(answer.headers.get("Rushes-Received"));
    this.sent = received > offset ? await this.keep(offset, received) : offset;
    this.show(`Continues at ${size(this.sent)}.`);
    return this.sent;
  }

  // What came of a part before the line was cut counts if it is what was sent.
  async keep(offset, received) {
    const sum = base64(await sha256(await this.file.slice(offset, received).arrayBuffer()));
    const answer = await fetch(`${this.place}/received`, { method: "POST", headers: { ...TUS, "Upload-Checksum": `sha256 ${sum}` } });
    if (!answer.ok && answer.status !== 460) throw new Error("again"); // somebody still writes, or the server is away
    return Number(answer.headers.get("Upload-Offset"));
  }

  async begin() {
    const said = { filename: this.file.name, ...chosen(), direct: this.direct && "yes" };
    const metadata = Object.entries(said).filter(([, value]) => value).map(([name, value]) => `${name} ${base64(new TextEncoder().encode(value))}`).join(",");
    const answer = await ask("/api/v1/uploads", { method: "POST", headers: { ...TUS, "Upload-Length": this.file.size, "Upload-Metadata": metadata } });
    localStorage.setItem(this.mark, new URL(answer.headers.get("Location"), location.href).pathname);
    this.begun(answer);
    return 0;
  }

  begun(answer) {
    this.job = answer.headers.get("Rushes-Job");
    this.parts = answer.headers.get("Rushes-Parts");
  }

  async sendStraight(onPart) {
    for (;;) {
      const { upload, parts } = await ask(this.parts, { method: "POST" }).then((answer) => answer.json());
      this.sent = upload.offset;
      if (upload.state === "refused") throw new Problem(upload.why);
      if (!parts.length) return this.arrive();
      this.stop = new AbortController();
      this.under = new Map(); // bytes of each part that is on its way
      const lane = async () => {
        for (let part = parts.shift(); part; part = parts.shift()) {
          await this.put(part);
          onPart();
          this.progress();
        }
      };
      const ends = await Promise.allSettled(Array.from({ length: ABREAST }, lane)); // what is on its way may arrive
      const failed = ends.find((end) => end.status === "rejected");
      if (failed) throw failed.reason;
    }
  }

  async put({ start, end, url }) {
    const told = (bytes) => {
      this.under.set(start, bytes);
      this.progress([...this.under.values()].reduce((sum, one) => sum + one, 0));
    };
    const answer = await transfer("PUT", url, {}, this.file.slice(start, end), this.stop.signal, told);
    if (!answer.ok) throw new Error("again"); // too late for this address: another is asked for
    if (this.state === "lost") this.state = "sending";
    this.under.delete(start);
    this.sent += end - start;
  }

  // A bucket that has never answered this browser (another network, no rule for this page) is left alone.
  async leaveBucket() {
    this.direct = false;
    await fetch(this.place, { method: "DELETE", headers: TUS });
    localStorage.removeItem(this.mark);
  }

  async part(offset) {
    const data = await this.file.slice(offset, offset + PART).arrayBuffer();
    this.stop = new AbortController();
    const headers = { ...TUS, "Upload-Offset": offset, "Content-Type": "application/offset+octet-stream", "Upload-Checksum": `sha256 ${base64(await sha256(data))}` };
    const answer = await transfer("PATCH", this.place, headers, data, this.stop.signal, (bytes) => this.progress(bytes));
    if (answer.status === 409) return Number(answer.header("Upload-Offset"));
    if (answer.status === 423 || answer.status === 460 || answer.status >= 500) throw new Error("again");
    if (!answer.ok) throw new Problem(await words(answer));
    return Number(answer.header("Upload-Offset"));
  }

  async drop() {
    this.state = "refused";
    this.stop?.abort();
    if (this.place) await fetch(this.place, { method: "DELETE", headers: TUS }).catch(() => {});
    localStorage.removeItem(this.mark);
    files.splice(files.indexOf(this), 1);
    this.row.remove();
    tell();
  }
}

const markOf = (file) => `rushes.upload ${file.name} ${file.size} ${file.lastModified}`;

class Problem extends Error {}

class Unreached extends Error {}

// The speed of the last few seconds, in bytes a second.
class Meter {
  constructor(sent) { this.seen = [[performance.now(), sent]]; }

  rate(sent) {
    const now = performance.now();
    this.seen.push([now, sent]);
    while (this.seen.length > 2 && now - this.seen[0][0] > 5000) this.seen.shift();
    const [[began, before]] = this.seen;
    return now - began > 200 ? Math.max(0, (sent - before) / ((now - began) / 1000)) : 0;
  }
}

// A request whose body is watched while it goes, which fetch cannot.
function transfer(method, url, headers, body, signal, onSent) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => onSent(event.loaded));
    request.addEventListener("load", () => done({
      ok: request.status >= 200 && request.status < 300, status: request.status,
      header: (name) => request.getResponseHeader(name), json: async () => JSON.parse(request.responseText),
    }));
    request.addEventListener("error", () => failed(new Unreached()));
    request.addEventListener("abort", () => failed(new DOMException("stopped", "AbortError")));
    signal.addEventListener("abort", () => request.abort(), { once: true });
    request.send(body);
  });
}

async function words(answer) {
  const said = await answer.json().catch(() => ({}));
  return [said.detail, said.hint].filter(Boolean).join(". ") || `The server answered ${answer.status}.`;
}

async function ask(path, how) {
  const answer = await fetch(path, how);
  if (answer.status >= 500) throw new Error("away");
  if (!answer.ok) throw new Problem(await words(answer));
  return answer;
}


const chosen = () => Object.fromEntries(["recipe", "profile", "language", "format"].map((name) => [name, new FormData(wish).get(name)]));

async function add(picked) {
  const fresh = [...picked].filter((file) => file.size && !files.some((one) => one.mark === markOf(file))).map((file) => new Sending(file));
  for (const one of fresh) {
    files.push(one);
    list.querySelector(`[data-unfinished][data-name="${CSS.escape(one.file.name)}"][data-size="${one.file.size}"]`)?.remove();
    list.append(one.row);
    look(one);
    if (one.place) one.run();
  }
  await compare(fresh.filter((one) => one.state === "new"));
  tell();
}

// The browser itself says how long a film is and shows a picture of it, if it can play it.
function look(one) {
  const film = document.createElement("video");
  film.muted = true;
  film.preload = "metadata";
  film.src = URL.createObjectURL(one.file);
  film.addEventListener("loadedmetadata", () => {
    Object.assign(one, { seconds: film.duration, width: film.videoWidth, height: film.videoHeight });
    film.currentTime = Math.min(film.duration / 10, 30);
    one.row.querySelector(".file-thumb").replaceChildren(film);
    if (one.state === "new") one.show([timecode(film.duration * 1e6), film.videoWidth ? `${film.videoWidth} × ${film.videoHeight}` : "audio only"].join(", "));
    estimate();
  });
}

// Only a film of just the same size can be the same: that one is hashed here before anything is sent.
async function compare(fresh) {
  if (!fresh.length) return;
  const known = await fetch(`/add/known?${fresh.map((one) => `size=${one.file.size}`).join("&")}`).then((a) => a.json()).catch(() => []);
  for (const one of fresh) {
    const alike = known.filter((video) => video.size === one.file.size);
    if (!alike.length) continue;
    const sum = await summed(one.file);
    const same = alike.find((video) => video.sha256 === sum);
    if (!same || one.state !== "new") continue;
    one.state = "here";
    one.open(`/videos/${same.id}`, "Open");
    one.show(`Same content as ${same.name}. Not uploaded again.`);
  }
}

async function summed(file) {
  const sum = new Sha256();
  for (let at = 0; at < file.size; at += PART) sum.update(new Uint8Array(await file.slice(at, at + PART).arrayBuffer()));
  return hex(sum.digest());
}

function tell() {
  if (!start) return;
  const ready = files.filter((one) => one.state === "new").length;
  const busy = files.some((one) => one.state === "sending" || one.state === "lost");
  start.disabled = !ready;
  start.textContent = ready ? `Upload and process ${plural(ready, "video")}` : busy ? "Uploading" : "Choose files first";
}

async function estimate() {
  const known = files.filter((one) => one.seconds && one.state !== "here");
  if (!known.length) return;
  const seconds = known.reduce((sum, one) => sum + one.seconds, 0);
  const largest = known.reduce((a, b) => ((a.width ?? 0) * (a.height ?? 0) > (b.width ?? 0) * (b.height ?? 0) ? a : b));
  const query = new URLSearchParams({ seconds, width: largest.width || 16, height: largest.height || 16 });
  const answer = await fetch(`/add/forecast?${query}`);
  if (!answer.ok) return;
  document.querySelector("[data-basis]").textContent = `${plural(known.length, "video")}, ${timecode(seconds * 1e6)}, on this machine`;
  for (const [recipe, found] of Object.entries(await answer.json())) showForecast(recipe, found);
}

function showForecast(recipe, found) {
  const box = document.querySelector(`[data-estimate="${recipe}"]`);
  const words = found.whole ? timeRange(found.whole) : "unknown";
  document.querySelector(`[data-range="${recipe}"]`).textContent = words;
  box.querySelector("[data-whole]").textContent = words;
  box.querySelector("[data-size]").textContent = `${size(found.size)} stored`;
  for (const place of box.querySelectorAll("[data-stage]")) {
    const range = found.stages[place.dataset.stage];
    if (!range) continue;
    const [sure, perhaps] = place.querySelectorAll("rect");
    place.querySelector("svg").setAttribute("viewBox", `0 0 ${found.longest} 1`);
    sure.setAttribute("width", range[0]);
    perhaps.setAttribute("x", range[0]);
    perhaps.setAttribute("width", range[1] - range[0]);
    place.lastElementChild.textContent = timeRange(range);
  }
}

wish?.addEventListener("change", () => {
  const recipe = new FormData(wish).get("recipe");
  for (const box of document.querySelectorAll("[data-estimate]")) box.hidden = box.dataset.estimate !== recipe;
});

if (list) {
  const zone = document.querySelector("[data-drop]");
  document.querySelector("[data-files]").addEventListener("change", (event) => { add(event.target.files); event.target.value = ""; });
  for (const name of ["dragenter", "dragover"]) addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) addEventListener(name, () => zone.classList.remove("over"));
  addEventListener("drop", (event) => { event.preventDefault(); add(event.dataTransfer.files); });
  start.addEventListener("click", () => { for (const one of files) if (one.state === "new") one.run(); });
  addEventListener("online", () => { for (const one of files) if (one.state === "lost") one.run(); });
}
