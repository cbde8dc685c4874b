// Completion in search boxes: whole queries that begin like the one that is being typed.
const PAUSE = 120; // milliseconds without a key before it is asked

export function startSearchBoxes() {
  const list = document.getElementById("completions");
  for (const box of document.querySelectorAll("[data-search]")) {
    let waiting;
    box.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => offer(box, list), PAUSE);
    });
  }
}

async function offer(box, list) {
  const answer = await fetch(`/search/complete?q=${encodeURIComponent(box.value)}`).catch(() => null);
  if (!answer?.ok) return;
  const words = await answer.json();
  list.replaceChildren(...words.map((word) => Object.assign(document.createElement("option"), { value: word })));
}
