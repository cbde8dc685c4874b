// Jobs as they change: one stream per page, and a banner while it is lost.
const listeners = new Set();
const arrivals = new Set();
const AGAIN = 2000; // milliseconds before the next try
let source;
let since; // when the stream was lost
let telling;

export function followJobs(listener) {
  listeners.add(listener);
  if (!source) connect();
  return () => listeners.delete(listener);
}

// What changed before the stream was there, or while it was lost, is not told by it: look again when it is.
export function whenLive(listener) {
  arrivals.add(listener);
  if (source?.readyState === EventSource.OPEN) listener();
}

function connect() {
  source = new EventSource("/api/v1/events");
  source.addEventListener("job", (event) => {
    const job = JSON.parse(event.data);
    for (const listener of listeners) listener(job);
  });
  source.addEventListener("open", () => { since = undefined; clearTimeout(telling); banner(false); for (const listener of arrivals) listener(); });
  source.addEventListener("error", () => {
    if (!since) telling = setTimeout(() => banner(true), 3000);
    since ??= new Date();
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, AGAIN); // the browser gives up on an error answer
  });
}
addEventListener("pagehide", () => source?.close());

// What is shown is as old as the moment at which the stream was lost.
function banner(show) {
  const place = document.querySelector("[data-connection]");
  if (!place || place.hidden !== show) return;
  if (show) place.querySelector("time").textContent = since.toLocaleTimeString();
  place.hidden = !show;
}
