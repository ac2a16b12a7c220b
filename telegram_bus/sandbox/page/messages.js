// The messages of one thread: bubbles that are replaced where they change, never drawn anew as a whole.

import { contents, inWords } from "/page/content.js";
import { Kept, dayOf, el, iconButton, timeOf } from "/page/dom.js";
import { isService, serviceText } from "/page/store.js";
import { richText } from "/page/text.js";

const QUICK = ["👍", "❤", "🔥", "🎉", "👏", "🤔", "😁", "👀"];
const SHOWN = 200; // messages of a thread at first; earlier ones on demand
const TOGETHER = 300; // seconds within which one person's messages form a group

export class Messages {
  constructor(box, doings) {
    this.kept = new Kept(box);
    this.doings = doings; // reply, edit, remove, react, press, command
  }

  /** Show a thread; only what differs from what is shown is made anew. */
  show(store, chatId, thread, me) {
    const key = `${store.instance}/${chatId}/${thread}/${me}`;
    if (key !== this.key) {
      this.key = key;
      this.kept.clear();
      this.shown = SHOWN;
    }
    const waiting = new Set([...store.pressed.values()].map((press) => `${press.chat_id}/${press.message_id}/${press.data}`));
    const wanted = [];
    let before;
    const all = store.messages(chatId, thread);
    if (all.length > this.shown) wanted.push(this.keep("earlier", "", () => this.earlier(() => this.show(store, chatId, thread, me))));
    for (const message of all.slice(-this.shown)) {
      if (!before || dayOf(before.date) !== dayOf(message.date)) wanted.push(this.keep(`day ${dayOf(message.date)}`, "", () => daySign(message.date)));
      const joined = before && !isService(before) && before.from.id === message.from.id && message.date - before.date < TOGETHER;
      const pending = (message.reply_markup?.inline_keyboard ?? []).flat().map((button) => waiting.has(`${chatId}/${message.message_id}/${button.callback_data}`));
      const look = `${joined} ${pending}`;
      wanted.push(this.keep(message.message_id, look, () => this.make(store, message, { joined, pending, me }), message));
      before = message;
    }
    if (wanted.length === 0) wanted.push(this.keep("empty", "", () => emptySign(store, chatId, thread)));
    const draft = store.draft(`${chatId}/${thread}`);
    if (draft) wanted.push(this.keep("draft", "", () => draftBubble(draft), draft));
    else if (store.typing(`${chatId}/${thread}`)) wanted.push(this.keep("typing", "", typingBubble));
    this.kept.show(wanted);
  }

  keep(id, look, make, shows) {
    const kept = this.kept.node(id, look, make, shows);
    if (kept.isNew) kept.node.classList.add("arriving");
    return kept;
  }

  earlier(again) {
    return el("button", { class: "earlier", type: "button", onclick: () => { this.shown += SHOWN; again(); } }, "Earlier messages");
  }

  make(store, message, look) {
    if (isService(message)) {
      return el("p", { class: "service", "data-message": message.message_id }, `${store.name(message.from.id)} ${serviceText(message)}`);
    }
    const mine = message.from.id === look.me;
    const bubble = el("div", { class: "bubble" },
      message.chat.type !== "private" && !mine && !look.joined && el("div", { class: "sender" }, store.name(message.from.id)),
      message.reply_to_message && quote(store, message),
      message.forward_origin && el("div", { class: "origin" }, `Forwarded from ${store.name(message.forward_origin.sender_user?.id)}`),
      contents(message),
      (message.text || message.caption) && el("div", { class: "text" }, richText(message.text ?? message.caption, message.entities ?? message.caption_entities, this.doings.command)),
      el("span", { class: "meta" }, message.edit_date ? "edited " : "", el("time", { datetime: new Date(message.date * 1000).toISOString() }, timeOf(message.date))));
    return el("article", {
      class: ["message", mine ? "mine" : "theirs", look.joined ? "joined" : ""].join(" "),
      tabIndex: 0,
      "data-message": message.message_id,
      "aria-label": `${store.name(message.from.id)}, ${timeOf(message.date)}${message.edit_date ? ", edited" : ""}`,
    }, el("div", { class: "stack" }, el("div", { class: "row" }, bubble, this.tools(message, mine)), this.keyboard(message, look.pending), this.reactions(store, message, look.me)));
  }

  tools(message, mine) {
    const does = this.doings;
    const palette = el("div", { class: "palette", hidden: true, role: "group", "aria-label": "Reactions" },
      QUICK.map((emoji) => el("button", { type: "button", "aria-label": `React with ${emoji}`, onclick: () => { palette.hidden = true; does.react(message, emoji); } }, emoji)));
    const shut = (event) => { if (!event.key || event.key === "Escape") palette.hidden = true; };
    return el("div", { class: "message-tools", onmouseleave: shut, onkeydown: shut },
      iconButton("smile", "React", () => { palette.hidden = !palette.hidden; }),
      iconButton("reply", "Reply", () => does.reply(message)),
      mine && iconButton("pen", "Edit", () => does.edit(message)),
      iconButton("trash", "Delete", () => does.remove(message)),
      palette);
  }

  keyboard(message, pending) {
    const rows = message.reply_markup?.inline_keyboard;
    if (!rows) return null;
    let index = 0;
    const button = (item) => {
      const busy = pending[index];
      index += 1;
      if (item.url) return el("a", { class: "key", href: /^https?:/i.test(item.url) ? item.url : "#", target: "_blank", rel: "noopener noreferrer" }, item.text, el("span", { class: "key-mark", "aria-hidden": "true" }, "↗"));
      return el("button", {
        class: busy ? "key busy" : "key", type: "button", disabled: item.callback_data === undefined,
        "aria-busy": busy ? "true" : undefined, onclick: () => this.doings.press(message, item.callback_data),
      }, item.text);
    };
    return el("div", { class: "keyboard", role: "group", "aria-label": "Buttons" }, rows.map((row) => el("div", { class: "keys" }, row.map(button))));
  }

  reactions(store, message, me) {
    if (message.reactions.length === 0) return null;
    return el("div", { class: "reactions" }, message.reactions.map(({ emoji, by }) => {
      const own = by.includes(me);
      const names = by.map((id) => store.name(id)).join(", ");
      return el("button", {
        class: own ? "reaction own" : "reaction", type: "button", title: names, "aria-pressed": own ? "true" : "false",
        "aria-label": `${emoji} by ${names}`, onclick: () => this.doings.react(message, own ? "" : emoji),
      }, emoji, by.length > 1 && el("span", {}, String(by.length)));
    }));
  }
}

const daySign = (date) => el("p", { class: "day" }, el("span", {}, dayOf(date)));

function quote(store, message) {
  const replied = message.reply_to_message;
  if (replied.message_id === message.message_thread_id) return null;
  return el("div", { class: "quote" }, el("strong", {}, store.name(replied.from.id)), el("span", {}, inWords(replied) || "a message"));
}

function typingBubble() {
  return el("div", { class: "message theirs" }, el("div", { class: "bubble typing", "aria-label": "typing" }, el("i"), el("i"), el("i")));
}

function draftBubble(draft) {
  const words = draft.text ? richText(draft.text, draft.entities) : ["Thinking …"];
  return el("div", { class: "message theirs" }, el("div", { class: "bubble draft", "aria-label": "draft" }, el("div", { class: "text" }, words, el("span", { class: "caret" }))));
}

function emptySign(store, chatId, thread) {
  const words = thread === 0
    ? ["Nothing here yet", "Write to the bot, or open one of the threads. Every agent that joins gets a thread of its own."]
    : ["An empty thread", "What you write here reaches only the agent this thread belongs to."];
  return el("div", { class: "empty" }, el("strong", {}, words[0]), el("span", {}, words[1]));
}
