// Making elements without innerHTML: whatever a bot or a person writes stays text.

export const byId = (id) => document.getElementById(id);

/** An element with properties (`class`, `on…`, `aria-…`, `data-…`, others are set as they are) and children. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role" || name === "datetime") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  svg.setAttribute("aria-hidden", "true");
  return svg;
}

export function iconButton(name, label, action, extra = {}) {
  return el("button", { class: "icon", type: "button", "aria-label": label, title: label, onclick: action, ...extra }, icon(name));
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
export const timeOf = (seconds) => clock.format(new Date(seconds * 1000));

export function dayOf(seconds) {
  const date = new Date(seconds * 1000);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000);
  return days === 0 ? "Today" : days === 1 ? "Yesterday" : day.format(date);
}

const FOCUSABLE = "a, button, input, summary, [tabindex]";

/** Lists of nodes that are kept as long as they look the same, so that focus, clicks and scrolling survive news. */
export class Kept {
  constructor(box) {
    this.box = box;
    this.nodes = new Map(); // id → {look, shows, node}
  }

  /** The node for `id`, made anew only when its look, or the object that it shows, is another one. */
  node(id, look, make, shows = null) {
    const kept = this.nodes.get(id);
    if (kept?.look === look && kept.shows === shows) return { id, node: kept.node };
    const node = make(kept?.node);
    if (kept) replaceKeepingFocus(kept.node, node);
    this.nodes.set(id, { look, shows, node });
    return { id, node, isNew: !kept };
  }

  /** Show exactly these, in this order. */
  show(wanted) {
    const ids = new Set(wanted.map((item) => item.id));
    for (const [id, { node }] of this.nodes) {
      if (!ids.has(id)) {
        node.remove();
        this.nodes.delete(id);
      }
    }
    const focused = document.activeElement;
    wanted.forEach(({ node }, index) => {
      if (this.box.children[index] !== node) this.box.insertBefore(node, this.box.children[index] ?? null);
    });
    // A node that moves loses the focus.
    if (focused !== document.activeElement && this.box.contains(focused)) focused.focus({ preventScroll: true });
  }

  clear() {
    this.nodes.clear();
    this.box.replaceChildren();
  }
}

function replaceKeepingFocus(old, fresh) {
  const index = [old, ...old.querySelectorAll(FOCUSABLE)].indexOf(document.activeElement);
  old.replaceWith(fresh);
  if (index >= 0) ([fresh, ...fresh.querySelectorAll(FOCUSABLE)][index] ?? fresh).focus({ preventScroll: true });
}
