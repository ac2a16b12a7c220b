// The page: which chat, thread and person are shown, and what a person does.

import { act, follow, loadState, Refused } from "/page/api.js";
import { ask, toast } from "/page/ask.js";
import { Composer } from "/page/composer.js";
import { byId, iconButton } from "/page/dom.js";
import { closeMenu, openMenu } from "/page/menu.js";
import { Messages } from "/page/messages.js";
import { Panel } from "/page/panel.js";
import { Pins } from "/page/pins.js";
import { Place } from "/page/place.js";
import { paintIcon, showSidebar } from "/page/sidebar.js";
import { keyOf, Store } from "/page/store.js";
import { Trouble } from "/page/trouble.js";

const NEAR_END = 80; // pixels: who is that near the end stays there
const TYPING_CHECK = 500; // milliseconds between looks whether somebody stopped typing

let store;
let view = { me: 0, chat: 0, thread: null };
const messages = new Messages(byId("messages"), {
  reply: (message) => composer.reply(message),
  edit: (message) => composer.edit(message),
  remove: (message) => remove(message),
  react: (message, emoji) => doing("react", { message_id: message.message_id, emoji }),
  press: (message, data) => doing("press", { message_id: message.message_id, data }),
  vote: (message, options) => doing("vote", { message_id: message.message_id, options }),
  pin: (message, pinned) => doing("pin", { message_id: message.message_id, pinned }),
  stop: (draft) => doing("drafts/stop", { draft_id: draft.draft_id }),
  command: (words) => doing("say", { text: words, thread_id: shownThread() }),
  start: () => doing("say", { text: "/start" }),
  reveal: (messageId) => reveal(messageId),
});
const composer = new Composer({ place: () => ({ store, me: view.me, chat: view.chat, thread: shownThread() }), doing, sent: toEnd });
const pins = new Pins({ reveal, unpin: (message) => doing("pin", { message_id: message.message_id, pinned: false }) });
const panel = new Panel(() => toast("The sandbox does not answer.", "bad"));
const place = new Place(doing);
const trouble = new Trouble({ say: toast, place: () => view.chat });

// -- showing -----------------------------------------------------------------------------------------

async function start() {
  try {
    start.state = await loadState();
  } catch {
    online(false);
    setTimeout(start, 1000);
    return;
  }
  store = new Store(start.state);
  online(true);
  readPlace();
  draw({ jump: true });
  panel.restart();
  follow(start.state, { change, reset: start, online });
}

function change(news) {
  const atEnd = isAtEnd();
  store.apply(news);
  if (news.kind === "callback_answer") answered(news);
  if (news.kind === "topic_deleted" && news.chat_id === view.chat && news.thread_id === view.thread) go({ thread: wide() ? 0 : null });
  schedule(atEnd);
}

let scheduled = null;

function schedule(atEnd) {
  // Many changes at once are drawn once.
  scheduled = scheduled === null ? atEnd : scheduled && atEnd;
  if (schedule.frame) return;
  schedule.frame = setTimeout(() => {
    const stay = scheduled;
    schedule.frame = 0;
    scheduled = null;
    draw({ jump: stay });
  }, 16);
}

function draw({ jump = false } = {}) {
  const thread = shownThread();
  if (byId("app").classList.toggle("in-chat", view.thread !== null)) composer.grow();
  if (!document.hidden && (view.thread !== null || wide())) store.markSeen(view.chat, thread);
  showSidebar(store, { ...view, thread: view.thread === null && !wide() ? null : thread }, { go, menu: topicMenu });
  panel.settings(store.settings);
  place.show(store, view);
  trouble.show(store.flood, store.faults);
  drawHeader(thread);
  pins.show(keyOf(view.chat, thread), store.pinned(view.chat, thread), view.chat > 0 || view.me === store.owner);
  composer.allow();
  messages.show(store, view.chat, thread, view.me);
  if (jump) toEnd();
  drawToEnd();
}

function drawHeader(thread) {
  const chat = store.chats.get(view.chat);
  const topic = chat.has_topics ? chat.topics.get(thread) : undefined;
  const title = store.title(view.chat, thread);
  const typing = store.typing(keyOf(view.chat, thread)) ?? store.draft(keyOf(view.chat, thread));
  byId("chat-name").textContent = title;
  document.title = `${title} · ${store.bot.first_name}`;
  const status = typing ? `${store.bot.first_name} is ${typing.action && typing.action !== "typing" ? typing.action.replaceAll("_", " ") : "typing"} …` : statusOf(chat, topic);
  if (byId("chat-status").textContent !== status) byId("chat-status").textContent = status;
  byId("chat-status").classList.toggle("typing-text", Boolean(typing));
  paintIcon(byId("chat-icon"), topic, title);
  const signature = `${keyOf(view.chat, thread)}/${view.me}/${JSON.stringify(topic)}/${JSON.stringify(chat.general)}/${chat.has_topics}`;
  if (byId("chat-tools").dataset.for === signature) return;
  const focused = [...byId("chat-tools").children].indexOf(document.activeElement);
  byId("chat-tools").dataset.for = signature;
  byId("chat-tools").replaceChildren(...(topic ? topicTools(chat, topic) : generalTools(chat)));
  byId("chat-tools").children[focused]?.focus();
}

function statusOf(chat, topic) {
  if (chat.type === "private") return store.users.get(chat.id).blocked ? `${store.bot.first_name} is blocked` : `with ${store.bot.first_name}`;
  const closed = topic ? topic.closed : chat.is_forum && chat.general.closed;
  const bot = { administrator: "bot: administrator", member: "bot: member", left: "without the bot", kicked: "bot put out" }[chat.bot_status];
  const inside = !["left", "kicked"].includes(chat.bot_status);
  return [closed && "closed", chat.has_topics && chat.title, `${chat.members.length + Number(inside)} members`, bot].filter(Boolean).join(" · ");
}

// What can be done to a thread, in its header and in the menu of its entry in the list.
function topicDoings(chat, topic) {
  const closing = { icon: topic.closed ? "unlock" : "lock", label: topic.closed ? "Reopen the thread" : "Close the thread", act: () => doing(topic.closed ? "topics/reopen" : "topics/close", { thread_id: topic.thread_id }) };
  return [
    { icon: "pen", label: "Rename the thread", act: () => rename(topic) },
    chat.is_forum && closing, // Telegram closes no thread of a private chat
    { icon: "trash", label: "Delete the thread", act: () => removeTopic(topic), danger: true },
  ].filter(Boolean);
}

const topicTools = (chat, topic) => topicDoings(chat, topic).map((item) => iconButton(item.icon, item.label, item.act));

function topicMenu(event, topic) {
  openMenu(event, topicDoings(store.chats.get(view.chat), topic), topic.name);
}

function switchThreads(on) {
  const chat = store.chats.get(view.chat);
  if (chat.type === "private") return doing("settings", { threaded_mode: on });
  return doing("chat/forum", { forum: on, user_id: store.owner });
}

function generalTools(chat) {
  if (!chat.is_forum || view.me !== store.owner) return [];
  const { closed } = chat.general;
  return [iconButton(closed ? "unlock" : "lock", closed ? "Reopen the thread" : "Close the thread", () => doing("chat/general", { closed: !closed }))];
}

function isAtEnd() {
  const box = byId("scroll");
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
}

function toEnd() {
  byId("scroll").scrollTop = byId("scroll").scrollHeight;
  toEnd.stays = true;
}

function reveal(messageId) {
  toEnd.stays = false;
  if (messages.reveal(messageId)) drawToEnd();
  else toast("That message is in another thread, or no longer there.");
}

function drawToEnd() {
  byId("to-end").hidden = isAtEnd();
}

// -- where one is ------------------------------------------------------------------------------------

function go(target) {
  view = { ...view, ...target };
  const hash = view.thread === null ? `#${view.me}/${view.chat}` : `#${view.me}/${view.chat}/${view.thread}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
  composer.open();
  draw({ jump: true });
  if (view.thread !== null && wide()) byId("composer-text").focus();
}

// The thread that is shown; a chat without topics has one.
function shownThread() {
  return store.chats.get(view.chat).has_topics ? view.thread ?? 0 : 0;
}

function readPlace() {
  const [me, chat, thread] = location.hash.slice(1).split("/").map(Number);
  const known = store.users.has(me) && store.chats.has(chat);
  view = known ? { me, chat, thread: Number.isInteger(thread) ? thread : null } : { me: store.owner, chat: store.owner, thread: null };
  if (view.thread && !store.chats.get(view.chat).topics.has(view.thread)) view.thread = null;
  composer.open();
}

const wide = () => matchMedia("(min-width: 721px)").matches;

// -- what a person does ------------------------------------------------------------------------------

async function doing(name, fields) {
  try {
    return await act(name, { chat_id: view.chat, user_id: view.me, ...fields });
  } catch (error) {
    toast(error instanceof Refused ? error.message : "The sandbox does not answer.", "bad");
    return undefined;
  }
}

async function remove(message) {
  if (await ask({ title: "Delete this message?", text: "The bot is not told: Telegram has no update for it.", ok: "Delete", danger: true })) {
    await doing("delete", { message_id: message.message_id });
  }
}

async function newThread() {
  const name = await ask({ title: "New thread", text: "Without a name, the bot is expected to give it one.", ok: "Create", field: "" });
  if (name === null) return;
  const topic = await doing("topics/create", { name });
  if (topic) go({ thread: topic.thread_id });
}

async function rename(topic) {
  const name = await ask({ title: "Rename the thread", text: "", ok: "Rename", field: topic.name });
  if (name) await doing("topics/rename", { thread_id: topic.thread_id, name });
}

async function removeTopic(topic) {
  const sure = await ask({ title: `Delete “${topic.name}”?`, text: "All its messages go too. The bot is not told: Telegram has no update for it.", ok: "Delete", danger: true });
  if (sure) await doing("topics/delete", { thread_id: topic.thread_id });
}

function answered({ text, show_alert: alert }) {
  if (!text) return;
  if (alert) ask({ title: store.bot.first_name, text, ok: "OK" });
  else toast(text);
}

function online(yes) {
  byId("banner").hidden = yes;
}

// -- listening ---------------------------------------------------------------------------------------

byId("new-thread").addEventListener("click", newThread);
byId("threads-on").addEventListener("click", (event) => { // it moves when the sandbox says so, not before
  event.preventDefault();
  switchThreads(!store.chats.get(view.chat).has_topics);
});
byId("threads").addEventListener("scroll", () => closeMenu(), { passive: true });
byId("back").addEventListener("click", () => go({ thread: null }));
byId("to-end").addEventListener("click", () => byId("scroll").scrollTo({ top: byId("scroll").scrollHeight, behavior: "smooth" }));
byId("scroll").addEventListener("scroll", () => { toEnd.stays = isAtEnd(); drawToEnd(); }, { passive: true });
const sizes = new ResizeObserver(() => { // a picture that arrived, files above the message box: who was at the end stays there
  if (toEnd.stays) toEnd();
  drawToEnd();
});
sizes.observe(byId("scroll"));
sizes.observe(byId("messages"));
byId("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
});
document.addEventListener("keydown", (event) => {
  if (!event.altKey || !["ArrowUp", "ArrowDown"].includes(event.key)) return;
  event.preventDefault();
  const threads = store.threads(view.chat).map((entry) => entry.thread);
  const step = event.key === "ArrowDown" ? 1 : -1;
  const next = threads[threads.indexOf(view.thread ?? 0) + step];
  if (next !== undefined) go({ thread: next });
});
document.addEventListener("visibilitychange", () => { if (store && !document.hidden) draw(); });
addEventListener("popstate", () => { if (store) { readPlace(); draw({ jump: true }); } });
addEventListener("resize", () => { if (store) draw(); });
setInterval(() => { if (store && (store.actions.size || store.drafts.size)) draw({ jump: isAtEnd() }); }, TYPING_CHECK);

const theme = localStorage.getItem("theme");
if (theme) document.documentElement.dataset.theme = theme;
start();
