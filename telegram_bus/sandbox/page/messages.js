// The messages of one thread: bubbles that are replaced where they change, never drawn anew as a whole.

import { contents, inWords } from "/page/content.js";
import { Kept, dayOf, el, icon, iconButton, timeOf } from "/page/dom.js";
import { Polls } from "/page/poll.js";
import { colourOf, smallDisc } from "/page/sidebar.js";
import { isService, serviceText } from "/page/store.js";
import { richText } from "/page/text.js";

const QUICK = "👍 ❤ 🔥 🎉 👏 🤔 😁 👀 👎 😢 😱 🙏 👌 🤯 💯 🤝 😍 🥰 🤣 😎 😡 💩 ⚡ 🏆".split(" ");
const SHOWN = 200; // messages of a thread at first; earlier ones on demand
const TOGETHER = 300; // seconds within which one person's messages form a group

export class Messages {
  constructor(box, doings) {
    this.kept = new Kept(box);
    this.doings = doings; // reply, edit, remove, react, press, command, vote, pin, stop, start, reveal
    this.polls = new Polls(doings.vote);
    this.numbers = new WeakMap(); // of message objects: another object is another look
    this.made = 0;
  }

  /** Show a thread; only what differs from what is shown is made anew. */
  show(store, chatId, thread, me) {
    const key = `${store.instance}/${chatId}/${thread}/${me}/${store.chats.get(chatId).has_topics}`;
    if (key !== this.key) {
      this.key = key;
      this.kept.clear();
      this.shown = SHOWN;
    }
    this.again = () => this.show(store, chatId, thread, me);
    const all = store.messages(chatId, thread);
    this.all = all;
    const wanted = [];
    if (all.length > this.shown) wanted.push(this.keep("earlier", "", () => this.earlier()));
    const seen = { store, me, waiting: store.waiting(), pinned: new Set(store.chats.get(chatId).pinned), mayPin: chatId > 0 || me === store.owner };
    let before;
    for (const group of inAlbums(all.slice(-this.shown))) {
      const [first] = group;
      if (!before || dayOf(before.date) !== dayOf(first.date)) wanted.push(this.keep(`day ${dayOf(first.date)}`, "", () => daySign(first.date)));
      const joined = before && !isService(before) && before.from.id === first.from.id && first.date - before.date < TOGETHER;
      wanted.push(this.group(group, { ...seen, joined }));
      before = group.at(-1);
    }
    if (wanted.length === 0) wanted.push(this.keep("empty", "", () => emptySign(store, chatId, thread, me, this.doings.start)));
    const draft = store.draft(`${chatId}/${thread}`);
    if (draft) wanted.push(this.keep("draft", "", () => draftBubble(draft, this.doings.stop), draft));
    else if (store.typing(`${chatId}/${thread}`)) wanted.push(this.keep("typing", "", typingBubble));
    this.kept.show(wanted);
  }

  /** Scroll to a message, and show for a moment that it is meant. */
  reveal(messageId) {
    const index = this.all.findIndex((message) => message.message_id === messageId);
    if (index < 0) return false;
    if (this.all.length - index > this.shown) {
      this.shown = this.all.length - index + 20;
      this.again();
    }
    const node = this.kept.box.querySelector(`[data-message="${messageId}"]`);
    node.scrollIntoView({ block: "center" });
    node.classList.remove("meant");
    requestAnimationFrame(() => node.classList.add("meant"));
    if (node.tabIndex >= 0) node.focus({ preventScroll: true });
    return true;
  }

  group(group, seen) {
    const looks = group.map((message) => this.look(message, seen));
    const mark = `${seen.joined} ${JSON.stringify(looks)} ${group.map((message) => this.number(message)).join()}`;
    if (group.length === 1) return this.keep(group[0].message_id, mark, () => this.make(group[0], { ...seen, ...looks[0] }));
    return this.keep(`album ${group[0].message_id}`, mark, () => {
      const mine = group[0].from.id === seen.me;
      const kind = group.every((message) => message.photo) ? "pictures" : "files";
      return el("div", { class: `album ${kind} ${mine ? "mine" : "theirs"}`, role: "group", "aria-label": `Album of ${group.length}` },
        group.map((message, index) => this.make(message, { ...seen, ...looks[index], joined: seen.joined || index > 0 })));
    });
  }

  look(message, { waiting, pinned, mayPin }) {
    const buttons = (message.reply_markup?.inline_keyboard ?? []).flat();
    const pending = buttons.map((button) => waiting.has(`${message.chat.id}/${message.message_id}/${button.callback_data}`));
    return { pending, isPinned: pinned.has(message.message_id), mayPin };
  }

  number(message) {
    if (!this.numbers.has(message)) this.numbers.set(message, this.made += 1);
    return this.numbers.get(message);
  }

  keep(id, look, make, shows) {
    const kept = this.kept.node(id, look, make, shows);
    if (kept.isNew) kept.node.classList.add("arriving");
    return kept;
  }

  earlier() {
    return el("button", { class: "earlier", type: "button", onclick: () => { this.shown += SHOWN; this.again(); } }, "Earlier messages");
  }

  make(message, look) {
    const { store, me } = look;
    if (isService(message)) {
      return el("p", { class: "service", "data-message": message.message_id }, `${store.name(message.from.id)} ${serviceText(message)}`);
    }
    const mine = message.from.id === me;
    const bubble = el("div", { class: "bubble" },
      message.chat.type !== "private" && !mine && !look.joined && senderLine(message.from.id, store.name(message.from.id)),
      message.reply_to_message && this.quote(store, message),
      message.forward_origin && el("div", { class: "origin" }, `Forwarded from ${store.name(message.forward_origin.sender_user?.id)}`),
      message.poll ? this.polls.show(message, me) : contents(message),
      (message.text || message.caption) && el("div", { class: "text" }, richText(message.text ?? message.caption, message.entities ?? message.caption_entities, this.doings.command)),
      el("span", { class: "meta" }, look.isPinned && icon("pin"), message.edit_date ? "edited " : "", el("time", { datetime: new Date(message.date * 1000).toISOString() }, timeOf(message.date))));
    return el("article", {
      class: ["message", mine ? "mine" : "theirs", look.joined ? "joined" : ""].join(" "),
      tabIndex: 0,
      "data-message": message.message_id,
      "aria-label": `${store.name(message.from.id)}, ${timeOf(message.date)}${message.edit_date ? ", edited" : ""}${look.isPinned ? ", pinned" : ""}`,
    }, el("div", { class: "stack" }, el("div", { class: "row" }, bubble, this.tools(message, mine, look)), this.keyboard(message, look.pending), this.reactions(store, message, me)));
  }

  tools(message, mine, { isPinned, mayPin }) {
    const does = this.doings;
    // Whoever opens the palette is in it, and back at its button afterwards.
    const open = iconButton("smile", "React", () => { palette.hidden = !palette.hidden; if (!palette.hidden) palette.firstChild.focus({ preventScroll: true }); });
    const palette = el("div", { class: "palette", hidden: true, role: "group", "aria-label": "Reactions" },
      QUICK.map((emoji) => el("button", { type: "button", "aria-label": `React with ${emoji}`, onclick: () => { open.focus({ preventScroll: true }); palette.hidden = true; does.react(message, emoji); } }, emoji)));
    const shut = (event) => {
      if (palette.hidden || (event.key && event.key !== "Escape")) return;
      if (palette.contains(document.activeElement)) open.focus({ preventScroll: true });
      palette.hidden = true;
    };
    return el("div", { class: "message-tools", onmouseleave: shut, onkeydown: shut },
      open,
      iconButton("reply", "Reply", () => does.reply(message)),
      mayPin && iconButton("pin", isPinned ? "Unpin" : "Pin", () => does.pin(message, !isPinned)),
      mine && iconButton("pen", "Edit", () => does.edit(message)),
      iconButton("trash", "Delete", () => does.remove(message)),
      palette);
  }

  quote(store, message) {
    const replied = message.reply_to_message;
    if (replied.message_id === message.message_thread_id) return null;
    const quote = el("button", { class: "quote", type: "button", onclick: () => this.doings.reveal(replied.message_id) },
      el("strong", {}, store.name(replied.from.id)), el("span", {}, inWords(replied) || "a message"));
    quote.style.setProperty("--who", colourOf(replied.from.id));
    return quote;
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

// Messages that were sent as an album stand together.
function inAlbums(messages) {
  const groups = [];
  for (const message of messages) {
    const last = groups.at(-1);
    if (message.media_group_id && last?.[0].media_group_id === message.media_group_id) last.push(message);
    else groups.push([message]);
  }
  return groups;
}

const daySign = (date) => el("p", { class: "day" }, el("span", {}, dayOf(date)));

function senderLine(id, name) {
  const line = el("div", { class: "sender" }, smallDisc(id, name), el("span", {}, name));
  line.style.setProperty("--who", colourOf(id));
  return line;
}

function typingBubble() {
  return el("div", { class: "message theirs" }, el("div", { class: "bubble typing", "aria-label": "typing" }, el("i"), el("i"), el("i")));
}

function draftBubble(draft, stop) {
  const words = draft.text ? richText(draft.text, draft.entities) : ["Thinking …"];
  const bubble = el("div", { class: "bubble draft", "aria-label": "draft" }, el("div", { class: "text" }, words, el("span", { class: "caret" })));
  const button = draft.can_stop && el("button", { class: "key stop", type: "button", onclick: () => stop(draft) }, "Stop");
  return el("div", { class: "message theirs" }, el("div", { class: "stack" }, bubble, button));
}

function emptySign(store, chatId, thread, me, start) {
  if (chatId === me && thread === 0) {
    return el("div", { class: "empty" }, el("strong", {}, "Nothing here yet"),
      el("span", {}, store.chats.get(chatId).has_topics
        ? "Write to the bot, or open one of the threads. Every agent that joins gets a thread of its own."
        : "Write to the bot. Without threads all agents share this chat."),
      el("button", { class: "main-button", type: "button", onclick: start }, "Start"));
  }
  const words = thread === 0
    ? ["Nothing here yet", "The bot sees of it what its rights and its privacy mode allow."]
    : ["An empty thread", "What you write here reaches only the agent this thread belongs to."];
  return el("div", { class: "empty" }, el("strong", {}, words[0]), el("span", {}, words[1]));
}
