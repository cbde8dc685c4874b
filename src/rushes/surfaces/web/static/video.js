// The page of one video: player, tabs, transcript, timeline, selection and keys, and what appears while a job runs.
import { Boxes } from "./boxes.js";
import "./clip.js";
import { Selection, ready } from "./clips.js";
import { onKeys } from "./keys.js";
import { followJobs } from "./live.js";
import { showMoments } from "./moments.js";
import { Player } from "./player.js";
import { startTabs } from "./tabs.js";
import { Timeline } from "./timeline.js";
import { Transcript } from "./transcript.js";

const root = document.querySelector("[data-player]");
const id = root.dataset.video;
const query = root.dataset.query;
const player = new Player(root);
const tabs = startTabs(document.querySelector("[data-tabs]"));
let transcript = new Transcript(document.querySelector("[data-transcript]"), player, id);
const lanes = () => fetch(`/videos/${id}/lanes?q=${encodeURIComponent(query)}`).then((answer) => answer.json());
let data = await lanes();
const timeline = new Timeline(document.querySelector("[data-timeline]"), player, data, id);
const selection = new Selection(document.querySelector("[data-selection]"), timeline, player, id);
if (player.video && !("deep" in root.dataset)) new Boxes(player, id); // a box fits neither of two views
if (["#in-3d", "#clips"].includes(location.hash)) tabs.choose(location.hash.slice(1));

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-seek]");
  if (!link || event.ctrlKey || event.metaKey || !player.video) return;
  event.preventDefault();
  player.seek(Number(link.dataset.seek));
});

const asked = new URLSearchParams(location.search);
const begin = Number(asked.get("t"));
const end = Number(asked.get("end"));
if (end > begin) timeline.select(Math.round(begin * 1e6), Math.round(Math.min(end * 1e6, player.duration)));
if (begin > 0 && player.video) {
  const go = () => player.seek(begin * 1e6);
  player.video.readyState ? go() : player.video.addEventListener("loadedmetadata", go, { once: true });
  timeline.show(begin * 1e6);
}

let starts = data.hits.map(([start]) => start);
function number(us) {
  const place = document.querySelector("[data-hit-number]");
  if (place) place.textContent = starts.findLastIndex((start) => start <= us + 300000) + 1 || "–";
}
player.onTime(number);
number(begin * 1e6 || 0);

async function hit(by) {
  if (!query) return;
  const us = player.us;
  const next = by > 0 ? starts.find((start) => start > us + 50000) : starts.findLast((start) => start < us - 500000);
  if (next !== undefined) { player.seek(next); return; }
  const answer = await fetch(`/api/v1/search/next?q=${encodeURIComponent(query)}&video=${id}&at_us=${us}&back=${by < 0}`);
  const found = answer.ok ? await answer.json() : null;
  if (found && found.video !== id) location.assign(`/videos/${found.video}?q=${encodeURIComponent(query)}&t=${(found.start_us / 1e6).toFixed(3)}`);
}
for (const button of document.querySelectorAll("[data-hit]")) button.addEventListener("click", () => hit(Number(button.dataset.hit)));

function shot(by) {
  const edges = data.shots.map(([start]) => start);
  const next = by > 0 ? edges.find((start) => start > player.us + 1000) : edges.findLast((start) => start < player.us - 500000);
  player.seek(next ?? (by > 0 ? player.us : 0));
}

if (player.video) {
  const jumps = Object.fromEntries([...Array(10).keys()].map((n) => [String(n), () => player.seek((player.duration * n) / 10)]));
  onKeys({
    ...jumps, " ": () => player.toggle(), k: () => player.toggle(), j: () => player.skip(-10), l: () => player.skip(10),
    ArrowLeft: () => player.skip(-5), ArrowRight: () => player.skip(5), ",": () => player.step(-1), ".": () => player.step(1),
    "<": () => player.speed(-1), ">": () => player.speed(1), m: () => player.mute(), f: () => player.full(),
    s: () => player.captions(), b: () => root.dispatchEvent(new CustomEvent("boxes")),
    i: () => selection.set("in"), o: () => selection.set("out"), c: () => selection.clip(),
    "[": () => shot(-1), "]": () => shot(1), n: () => hit(1), p: () => hit(-1),
    "+": () => timeline.zoomBy(2), "=": () => timeline.zoomBy(2), "-": () => timeline.zoomBy(0.5),
    e: () => { tabs.choose("said"); transcript.edit(); },
  });
}

const clip = document.querySelector("[data-clip]");
if (clip && ["queued", "processing"].includes(clip.dataset.clipStatus)) ready({ clip_id: clip.dataset.clip, status: clip.dataset.clipStatus });

document.addEventListener("cut", () => refresh());

// While its job runs, what is new appears: lists and lanes as they are now; the player is left alone.
let due = false, done = -1;
followJobs((job) => {
  if (job.video !== id || job.recipe === "clip") return;
  const percent = document.querySelector("[data-percent]");
  if (percent && job.counts.total) percent.textContent = Math.floor((100 * job.counts.done) / job.counts.total);
  if (job.counts.done === done) return;
  done = job.counts.done;
  if (!due) { due = true; setTimeout(refresh, job.state === "completed" ? 300 : 3000); }
});

async function refresh() {
  due = false;
  if (document.querySelector("form.correct")) return;
  const page = new DOMParser().parseFromString(await fetch(location.href, { headers: { Accept: "text/html" } }).then((answer) => answer.text()), "text/html");
  if (!player.video && page.querySelector("video")) { location.reload(); return; }
  for (const panel of page.querySelectorAll("[data-panel]")) document.getElementById(panel.id).replaceChildren(...panel.childNodes);
  document.querySelector("[data-working]")?.replaceWith(page.querySelector("[data-working]") ?? "");
  showMoments(document);
  data = await lanes();
  starts = data.hits.map(([start]) => start);
  timeline.renew(data);
  transcript.stop();
  transcript = new Transcript(document.querySelector("[data-transcript]"), player, id);
}
