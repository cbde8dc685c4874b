// Parts of a page that change: when a job moves, or every few seconds, the page is asked for again and what differs is
// put in its place. New rows wait behind a link, nothing moves under the pointer, and what has the focus stays.
import { followJobs, whenLive } from "./live.js";
import { showMoments } from "./moments.js";

const LEAST = 1000; // milliseconds between two looks
const seen = new Map(); // element id -> its markup as the server wrote it
const subject = document.querySelector("[data-job]")?.dataset.job;
const every = Number(document.querySelector("[data-every]")?.dataset.every || 0) * 1000;
let last = 0;
let due;
let looking = false;
let again = false; // something happened during a look, which may not have seen it
let leaving = false;

function soon() {
  if (looking) again = true;
  else due ??= setTimeout(look, Math.max(0, last + LEAST - Date.now()));
}

async function look() {
  due = undefined;
  looking = true;
  last = Date.now();
  try {
    if (!leaving && !document.hidden) await show();
  } catch {
    // the server is away: the banner says so, and the next event comes when it is back
  }
  looking = false;
  if (again) soon();
  again = false;
}

async function show() {
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
  if (!answer.ok || leaving) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const place of document.querySelectorAll("[data-grows]")) grow(place, fresh.getElementById(place.id));
  for (const place of document.querySelectorAll("[data-live]")) renew(place, fresh.getElementById(place.id));
  tellNew(fresh);
  if (!fresh.querySelector("[data-every]")) clearInterval(timer);
}

function renew(place, now) {
  if (!now || now.outerHTML === seen.get(place.id) || place.contains(document.activeElement)) return;
  seen.set(place.id, now.outerHTML);
  place.replaceWith(now);
  showMoments(now);
}

// A table that has other rows than before (a plan was opened) is put in whole.
function grow(place, now) {
  if (!now || place.rows.length === now.rows.length) return;
  place.replaceWith(now.cloneNode(true));
}

function tellNew(fresh) {
  const note = document.querySelector("[data-new]");
  const count = [...fresh.querySelectorAll("[data-rows] > tr")].filter((row) => !document.getElementById(row.id)).length;
  if (!note || !count) return;
  note.querySelector("[data-new-count]").textContent = count;
  note.hidden = false;
}

addEventListener("submit", (event) => { leaving ||= !event.defaultPrevented; });
addEventListener("pageshow", () => { leaving = false; });
document.addEventListener("visibilitychange", soon);
whenLive(soon);
followJobs((job) => { if (!subject || subject === job.id) soon(); });
const timer = every ? setInterval(soon, every) : undefined;
