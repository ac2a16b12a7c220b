// Questions and notes above the page.

import { byId, el } from "/page/dom.js";

const NOTE_LIFE = 4000; // milliseconds

/** Ask a person; gives true, the text of the field, or null when they cancelled. */
export function ask({ title, text, ok, field, danger = false }) {
  const dialog = byId("ask");
  byId("ask-title").textContent = title;
  byId("ask-text").textContent = text;
  byId("ask-text").hidden = !text;
  byId("ask-ok").textContent = ok;
  byId("ask-ok").classList.toggle("danger", danger);
  byId("ask-field").hidden = field === undefined;
  byId("ask-input").value = field ?? "";
  dialog.returnValue = "";
  if (!dialog.open) dialog.showModal();
  if (field === undefined) byId("ask-ok").focus();
  else byId("ask-input").select();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "ok") resolve(null);
      else resolve(field === undefined ? true : byId("ask-input").value);
    }, { once: true });
  });
}

/** Show a note for a moment; `kind` "bad" for what failed. */
export function toast(text, kind = "") {
  const note = el("div", { class: `toast ${kind}` }, text);
  byId("toasts").append(note);
  setTimeout(() => note.remove(), NOTE_LIFE);
}

byId("ask-cancel").addEventListener("click", () => byId("ask").close(""));
