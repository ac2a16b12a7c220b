// A message's text with its entities, as nodes. Offsets count UTF-16 units, as JavaScript's strings do.

import { el } from "/page/dom.js";

const BLOCKS = new Set(["pre", "blockquote", "expandable_blockquote"]);
const TAGS = {
  bold: "strong", italic: "em", underline: "u", strikethrough: "s", code: "code", pre: "pre",
  blockquote: "blockquote", expandable_blockquote: "blockquote",
};

/** Nodes for a text; `command` is called with the command that a person clicks. */
export function richText(text, entities = [], command = () => {}) {
  const sorted = [...entities].sort((one, other) => one.offset - other.offset || other.length - one.length);
  return build(text, 0, text.length, sorted, command);
}

function build(text, begin, end, entities, command) {
  const nodes = [];
  let at = begin;
  for (let index = 0; index < entities.length; index += 1) {
    const entity = entities[index];
    const from = Math.max(entity.offset, at);
    const to = Math.min(entity.offset + entity.length, end);
    if (to <= from) continue;
    const inner = [];
    while (index + 1 < entities.length && entities[index + 1].offset < to) {
      index += 1;
      inner.push(entities[index]);
    }
    // A block stands on lines of its own: the line ends around it would show as empty lines.
    const block = BLOCKS.has(entity.type);
    const before = text.slice(at, from);
    if (before) nodes.push(block && before.endsWith("\n") ? before.slice(0, -1) : before);
    nodes.push(wrap(entity, text.slice(from, to), build(text, from, to, inner, command), command));
    at = block && text[to] === "\n" ? to + 1 : to;
  }
  if (at < end) nodes.push(text.slice(at, end));
  return nodes;
}

function wrap(entity, words, children, command) {
  switch (entity.type) {
    case "url":
    case "text_link": {
      const target = entity.url ?? words;
      return /^https?:\/\//i.test(target)
        ? el("a", { href: target, target: "_blank", rel: "noopener noreferrer", title: target }, children)
        : el("span", { class: "link" }, children);
    }
    case "bot_command":
      return el("button", { class: "inline-link", type: "button", onclick: () => command(words) }, words);
    case "mention":
    case "hashtag":
    case "email":
    case "text_mention":
      return el("span", { class: "link" }, children);
    case "spoiler": {
      const spoiler = el("span", { class: "spoiler", role: "button", tabIndex: 0, "aria-label": "Show the hidden text" }, children);
      const show = () => { spoiler.classList.add("shown"); spoiler.removeAttribute("role"); spoiler.removeAttribute("aria-label"); };
      spoiler.addEventListener("click", show);
      spoiler.addEventListener("keydown", (event) => { if (event.key === "Enter") show(); });
      return spoiler;
    }
    case "pre":
      return el("pre", { tabIndex: 0 }, entity.language && el("span", { class: "language" }, entity.language), el("code", {}, children));
    default:
      return el(TAGS[entity.type] ?? "span", {}, children);
  }
}
