// Moments in the viewer's zone: <time datetime="..." data-moment="both|time|date|ago">.
const FORMS = {
  both: { dateStyle: "medium", timeStyle: "short" },
  time: { timeStyle: "short" },
  date: { dateStyle: "medium" },
};

export function showMoments(root) {
  for (const place of root.querySelectorAll("time[data-moment]")) {
    const at = new Date(place.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    place.textContent = place.dataset.moment === "ago" ? ago(at) : new Intl.DateTimeFormat(undefined, FORMS[place.dataset.moment]).format(at);
    place.title = at.toLocaleString();
  }
}

function ago(at) {
  const seconds = (at - Date.now()) / 1000;
  const steps = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const [unit, length] = steps.find(([, length]) => Math.abs(seconds) >= length) ?? steps.at(-1);
  return new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(Math.round(seconds / length), unit);
}
