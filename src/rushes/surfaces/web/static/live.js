// Jobs as they change: one stream per page, and a banner while it is lost.
const listeners = new Set();
const arrivals = new Set();
let source;

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
  let lost;
  source.addEventListener("open", () => { clearTimeout(lost); lost = undefined; banner(false); for (const listener of arrivals) listener(); });
  source.addEventListener("error", () => { lost ??= setTimeout(() => banner(true), 3000); });
  addEventListener("pagehide", () => source.close());
}

function banner(show) {
  const place = document.querySelector("[data-connection]");
  if (!place || place.hidden !== show) return;
  if (show) place.querySelector("time").textContent = new Date().toLocaleTimeString();
  place.hidden = !show;
}
