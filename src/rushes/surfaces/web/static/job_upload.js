// The film that a job waits for. It goes by one PUT to the address that the server gives, if that is in a bucket and the
// file is not too large for it; else in parts, which go on where they were after a lost line.
import { size, timeRange } from "./words.js";

const PART = 16_000_000; // bytes that are sent at once through the server
const WAIT = [500, 1000, 2000, 5000, 10000]; // milliseconds before the next try when the line is lost
const place = document.querySelector("[data-upload]");
const { upload, most, eta } = place.dataset;
const file = () => place.querySelector("input").files[0];
const button = place.querySelector("button");
const bar = place.querySelector("progress");

const note = (text) => { place.querySelector("[data-note]").textContent = text; };

function show(sent) {
  bar.hidden = false;
  bar.value = sent / file().size;
  note(`${size(sent)} of ${size(file().size)}`);
}

// XMLHttpRequest, because fetch does not tell how much was sent.
function send(method, url, body, headers, before) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => show(before + event.loaded);
    request.onload = () => (request.status < 300 ? done(request) : fail(new Refused(request)));
    request.onerror = () => fail(new Error("away"));
    request.send(body);
  });
}

class Refused extends Error {
  constructor(request) {
    super(problem(request));
    this.again = request.status >= 500;
  }
}

function problem(request) {
  try {
    return JSON.parse(request.responseText).detail;
  } catch {
    return `the server answered ${request.status}`;
  }
}

async function sendAll() {
  if (Number(most) && file().size <= Number(most)) return sendWhole();
  return Number(most) ? sendParts() : sendThrough();
}

async function sendWhole() {
  const job = await (await fetch(location.pathname, { headers: { Accept: "application/json" } })).json();
  if (job.upload_url) await send("PUT", job.upload_url, file(), {}, 0);
}

async function sendParts() {
  for (;;) {
    const answer = await fetch(`${upload}/parts`, { method: "POST", headers: { "Upload-Length": file().size } });
    if (!answer.ok) throw new Error("away");
    const { parts } = await answer.json();
    if (!parts.length) return;
    for (const part of parts) await send("PUT", part.url, file().slice(part.start, part.end), {}, part.start);
  }
}

async function sendThrough() {
  const head = await fetch(upload, { method: "HEAD", cache: "no-store" });
  if (!head.ok) throw new Error("away");
  let at = Number(head.headers.get("Upload-Offset"));
  while (at < file().size) {
    const headers = { "Upload-Offset": at, "Upload-Length": file().size, "Content-Type": "application/offset+octet-stream" };
    at = Number((await send("PATCH", upload, file().slice(at, at + PART), headers, at)).getResponseHeader("Upload-Offset"));
  }
}

async function keepSending() {
  for (let tries = 0; ; tries += 1) {
    try {
      await sendAll();
      note("Uploaded. The job starts when a worker is free.");
      return location.reload();
    } catch (error) {
      if (error instanceof Refused && !error.again) return note(error.message);
      note("Connection lost. The upload continues automatically.");
      await new Promise((go) => setTimeout(go, WAIT[Math.min(tries, WAIT.length - 1)]));
    }
  }
}

place.querySelector("input").addEventListener("change", () => {
  button.disabled = !file();
  const seconds = Number(eta) * (file()?.size ?? 0) / 1e6;
  note(file() ? `${size(file().size)}${seconds ? `, conversion about ${timeRange([seconds, seconds])}` : ""}` : "");
});
place.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true;
  await keepSending();
  button.disabled = false;
});
