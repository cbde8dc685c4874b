// Pages of clips: links to copy, and a clip that is being cut appears by itself.
import { copyText } from "./clips.js";

document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-copy-link]");
  if (!link || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  copyText(link.href);
});

const waiting = document.querySelector("[data-clip-wait]");
const timer = waiting && setInterval(async () => {
  const answer = await fetch(`/api/v1/clips/${waiting.dataset.clipWait}`).catch(() => null);
  if (!answer?.ok || ["queued", "processing"].includes((await answer.json()).status)) return;
  clearInterval(timer);
  location.reload();
}, 1000);
