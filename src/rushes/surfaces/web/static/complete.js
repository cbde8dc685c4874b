// Completion in search boxes: fields of the grammar, and what is known of them.
export function startSearchBoxes() {
  for (const box of document.querySelectorAll("[data-search]")) box.addEventListener("focus", () => offer(box), { once: true });
}

function offer() {}
