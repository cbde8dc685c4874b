// Choosing: filters that go by themselves, and a bar that says how many rows are chosen.
for (const select of document.querySelectorAll("select[data-go]")) {
  select.addEventListener("change", () => select.form.requestSubmit());
}
for (const form of document.querySelectorAll("form[action][class~='filters']")) {
  form.addEventListener("submit", () => {
    for (const field of form.elements) if (!field.value) field.disabled = true; // an address without empty questions
  });
}
for (const form of document.querySelectorAll("form[data-bulk]")) bulk(form);

function bulk(form) {
  const bar = form.querySelector("[data-bulkbar]");
  const all = form.querySelector("[data-all]");
  const boxes = () => [...form.querySelectorAll("tbody input[type=checkbox], .group input[type=checkbox], .person input[type=checkbox]")];
  const tell = () => {
    const chosen = boxes().filter((box) => box.checked);
    const count = chosen.reduce((sum, box) => sum + Number(box.dataset.count || 1), 0);
    bar.hidden = !chosen.length;
    bar.querySelector("[data-chosen]").textContent = `${count} selected`;
  };
  if (all) {
    all.hidden = false;
    all.addEventListener("change", () => { for (const box of boxes()) box.checked = all.checked; });
  }
  form.addEventListener("change", tell);
  tell();
}
