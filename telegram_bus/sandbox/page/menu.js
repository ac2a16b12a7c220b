// A menu at the pointer, or at the element that the keyboard is on.

import { byId, el, icon } from "/page/dom.js";

let opener = null;

/** Show a menu; each item is {label, icon, act, danger}. The keyboard's menu key opens it where its target is. */
export function openMenu(event, items, label) {
  event.preventDefault();
  const menu = byId("menu");
  opener = event.currentTarget ?? document.activeElement;
  menu.setAttribute("aria-label", label);
  menu.replaceChildren(...items.map((item) => el("button", {
    type: "button", role: "menuitem", class: item.danger ? "menu-item danger" : "menu-item",
    onclick: () => { closeMenu(); item.act(); },
  }, icon(item.icon), item.label)));
  menu.hidden = false;
  const from = opener.getBoundingClientRect();
  const byKeys = event.clientX === 0 && event.clientY === 0;
  const [x, y] = byKeys ? [from.left + 24, from.bottom - 8] : [event.clientX, event.clientY];
  menu.style.left = `${Math.max(8, Math.min(x, innerWidth - menu.offsetWidth - 8))}px`;
  menu.style.top = `${Math.max(8, Math.min(y, innerHeight - menu.offsetHeight - 8))}px`;
  menu.firstElementChild.focus({ preventScroll: true });
}

export function closeMenu({ back = false } = {}) {
  if (byId("menu").hidden) return;
  byId("menu").hidden = true;
  if (back && opener?.isConnected) opener.focus({ preventScroll: true });
}

byId("menu").addEventListener("keydown", (event) => {
  const items = [...byId("menu").children];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to !== undefined) items[(to + items.length) % items.length].focus();
  else if (event.key === "Escape" || event.key === "Tab") closeMenu({ back: true });
  else return;
  event.preventDefault();
  event.stopPropagation();
});
document.addEventListener("pointerdown", (event) => { if (!byId("menu").contains(event.target)) closeMenu(); });
addEventListener("blur", () => closeMenu());
addEventListener("resize", () => closeMenu());
