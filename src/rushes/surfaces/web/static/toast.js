// Toasts: what happened, and at most one thing to do about it. Text only, never markup.
export function toast(words, { alarm = false, href = "", link = "", file = "", keep = false } = {}) {
  const box = document.createElement("div");
  box.className = alarm ? "toast alarm" : "toast";
  const text = document.createElement("span");
  text.textContent = words;
  box.append(text);
  if (href) {
    const action = document.createElement("a");
    action.className = "button small";
    action.href = href;
    action.textContent = link;
    if (file) action.download = file;
    box.append(action);
  }
  document.querySelector("[data-toasts]").append(box);
  if (!keep) setTimeout(() => box.remove(), 8000);
  return box;
}

// Ask the API; a problem document becomes a toast and undefined.
export async function ask(method, path, body) {
  try {
    const answer = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const said = answer.status === 204 ? {} : await answer.json();
    if (answer.ok) return said;
    toast([said.detail, said.hint].filter(Boolean).join(". "), { alarm: true });
  } catch {
    toast("The server does not respond. Nothing was changed.", { alarm: true });
  }
  return undefined;
}
