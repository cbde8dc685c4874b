// Keys: single letters, off while somebody types, and an overlay that lists them.
const OFF = "rushes.keys.off";
const PLACES = { h: "/", l: "/library", p: "/people", j: "/jobs" };
const pages = new Map();

// A page's own keys: {k: () => {...}}; the names are those of KeyboardEvent.key.
export function onKeys(keys) {
  for (const [key, run] of Object.entries(keys)) pages.set(key, run);
}

export function startKeys() {
  const dialog = document.querySelector("[data-keys-dialog]");
  const opener = document.querySelector("[data-keys]");
  const off = document.querySelector("[data-keys-off]");
  opener.hidden = false;
  opener.addEventListener("click", () => dialog.showModal());
  off.checked = localStorage.getItem(OFF) === "1";
  off.addEventListener("change", () => localStorage.setItem(OFF, off.checked ? "1" : "0"));
  let leader = 0;
  const own = {
    "?": () => (dialog.open ? dialog.close() : dialog.showModal()),
    "/": () => document.querySelector("[data-search]")?.focus(),
    a: () => location.assign("/add"),
    g: () => { leader = Date.now(); },
  };
  document.addEventListener("keydown", (event) => {
    if (off.checked || event.ctrlKey || event.metaKey || event.altKey || types(event.target)) return;
    if (document.querySelector("dialog[open]") && event.key !== "?") return;
    const jump = Date.now() - leader < 1500 && PLACES[event.key];
    leader = 0;
    const run = jump ? () => location.assign(jump) : pages.get(event.key) ?? own[event.key];
    if (!run || presses(event)) return;
    event.preventDefault();
    if (event.key === " ") event.target.addEventListener("keyup", (up) => up.preventDefault(), { once: true }); // Firefox clicks on it
    run(event);
  });
}

function types(target) {
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName)
    || (target.tagName === "INPUT" && !["checkbox", "radio", "button", "range"].includes(target.type));
}

// Enter on a control belongs to the control, and so does Space where a page has no use for it or it ticks a box.
function presses(event) {
  if (event.key === " " && pages.has(" ")) return event.target.closest("input[type=checkbox], input[type=radio]");
  return [" ", "Enter"].includes(event.key) && event.target.closest("button, a, summary, input");
}
