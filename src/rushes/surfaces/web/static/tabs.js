// Tabs: the panels are there without script, one after another; with it one is shown at a time.
export function startTabs(root) {
  const tabs = [...root.querySelectorAll("[role=tab]")];
  const panels = tabs.map((tab) => document.getElementById(tab.getAttribute("aria-controls")));
  root.querySelector("[role=tablist]").hidden = false;

  function choose(id, focus = false) {
    for (const [n, tab] of tabs.entries()) {
      const chosen = panels[n].id === id;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
      panels[n].hidden = !chosen;
      panels[n].setAttribute("role", "tabpanel");
      if (chosen && focus) tab.focus();
    }
  }

  for (const [n, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(panels[n].id));
    tab.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      choose(panels[(n + by + tabs.length) % tabs.length].id, true);
    });
  }
  choose(panels[0].id);
  return { choose };
}
