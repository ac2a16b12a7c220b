// The list of threads, the chats and the person one writes as.

import { inWords } from "/page/content.js";
import { byId, el, Kept, timeOf } from "/page/dom.js";
import { isService, serviceText } from "/page/store.js";

const tabs = new Kept(byId("tabs"));
const threads = new Kept(byId("threads"));

/** A coloured disc with a topic's first letter; without a topic it stands for the main chat. */
export function paintIcon(disc, topic, title) {
  const name = topic ? topic.name : title;
  disc.textContent = topic ? [...name][0]?.toUpperCase() ?? "?" : "#";
  disc.style.setProperty("--disc", topic ? `#${topic.icon_color.toString(16).padStart(6, "0")}` : "var(--main-disc)");
  disc.classList.toggle("general", !topic);
  disc.classList.toggle("topic", Boolean(topic));
}

/** The colour of a person or a bot: the same wherever its name stands. */
export const colourOf = (id) => COLOURS[Math.abs(id) % COLOURS.length];
const COLOURS = ["#c8553d", "#c9822b", "#7a5cc7", "#2f9a62", "#2b93b5", "#4a78f0", "#c2508f"];

/** A small disc with a name's first letter, in the colour of who that is. */
export function smallDisc(id, name) {
  const disc = el("span", { class: "avatar tiny", "aria-hidden": "true" }, [...name][0]?.toUpperCase() ?? "?");
  disc.style.setProperty("--disc", colourOf(id));
  return disc;
}

export function showSidebar(store, view, { go, menu }) {
  byId("bot-name").textContent = store.bot.first_name;
  byId("bot-user").textContent = `@${store.bot.username}`;
  showTabs(store, view, go);
  showActing(store, view, go);
  const chat = store.chats.get(view.chat);
  const own = chat.has_topics && (chat.type !== "private" || store.settings.users_create_topics);
  byId("new-thread").hidden = !own;
  const fixed = chat.type === "group" || (chat.type === "supergroup" && view.me !== store.owner);
  byId("list-title").textContent = chat.has_topics ? "Threads" : fixed ? "Chat" : "Threads off";
  byId("threads-switch").hidden = fixed;
  byId("threads-on").checked = Boolean(chat.has_topics);
  threads.show(store.threads(view.chat).map((entry) => threadItem(store, view, entry, { go, menu })));
}

function showTabs(store, view, go) {
  const chats = [["Private", view.me], ["Forum", store.forum], ["Group", store.group]];
  tabs.show(chats.map(([label, chat]) => {
    const unread = chat === view.chat ? 0 : store.threads(chat).reduce((sum, entry) => sum + entry.unread, 0);
    return tabs.node(label, `${chat} ${chat === view.chat} ${unread}`, () => el("button", {
      type: "button", "aria-pressed": chat === view.chat ? "true" : "false", onclick: () => go({ chat, thread: null }),
    }, label, unread > 0 && el("span", { class: "dot", "aria-label": `${unread} unread` })));
  }));
}

const acting = {};

// Another person has another private chat, and sees the same groups.
function showActing(store, view, go) {
  const select = byId("acting");
  acting.go = (me) => go(store.chats.get(view.chat).type === "private" ? { me, chat: me, thread: null } : { me });
  if (select.options.length === 0) {
    select.append(...[...store.users.values()].map((user) => el("option", { value: user.id }, `${user.first_name} ${user.last_name}`)));
    select.addEventListener("change", () => acting.go(Number(select.value)));
  }
  select.value = String(view.me);
  const name = store.name(view.me);
  byId("acting-disc").replaceChildren(smallDisc(view.me, name));
}

function threadItem(store, view, { thread, topic, last, unread, key }, doings) {
  const chat = store.chats.get(view.chat);
  const title = store.title(view.chat, thread);
  const marks = chat.has_topics && chat.is_forum ? marksOf(topic ?? chat.general) : [];
  const typing = Boolean(store.typing(key) ?? store.draft(key));
  const current = thread === view.thread;
  const words = typing ? "typing …" : snippet(store, view, last);
  const look = JSON.stringify([title, topic, last?.date, words, typing, current, unread, marks]);
  return threads.node(`${store.instance}/${key}`, look, () => makeItem({ thread, topic, title, last, words, typing, current, unread, marks }, doings));
}

const marksOf = ({ closed, hidden }) => (hidden ? ["hidden"] : closed ? ["closed"] : []);

function makeItem({ thread, topic, title, last, words, typing, current, unread, marks }, { go, menu }) {
  const disc = el("span", { class: "avatar", "aria-hidden": "true" });
  paintIcon(disc, topic, title);
  return el("li", {}, el("button", {
    type: "button", class: "thread", "aria-current": current ? "true" : undefined, "data-thread": thread,
    onclick: () => go({ thread }), oncontextmenu: topic && ((event) => menu(event, topic)), "aria-haspopup": topic && "menu",
  },
  disc,
  el("span", { class: "thread-name" }, title, marks.map((mark) => el("span", { class: "closed-mark" }, mark))),
  last && el("time", { class: "thread-time" }, timeOf(last.date)),
  el("span", { class: typing ? "thread-last typing-text" : "thread-last" }, words),
  unread > 0 && !current && el("span", { class: "unread", "aria-label": `${unread} unread` }, String(unread))));
}

function snippet(store, view, last) {
  if (!last) return "no messages yet";
  if (isService(last)) return `${store.name(last.from.id)} ${serviceText(last)}`;
  const who = last.from.id === view.me ? "You: " : last.by_bot || last.chat.type === "private" ? "" : `${store.name(last.from.id)}: `;
  return who + inWords(last).replace(/\s+/g, " ");
}
