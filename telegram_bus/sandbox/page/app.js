// The page: which chat, thread and person are shown, and what a person does.

import { inWords } from "/page/content.js";
import { act, follow, loadState, Refused } from "/page/api.js";
import { byId, el, iconButton } from "/page/dom.js";
import { Messages } from "/page/messages.js";
import { Panel } from "/page/panel.js";
import { paintIcon, showSidebar } from "/page/sidebar.js";
import { keyOf, Store } from "/page/store.js";
import { Trouble } from "/page/trouble.js";

const NEAR_END = 80; // pixels: who is that near the end stays there
const TYPING_CHECK = 500; // milliseconds between looks whether somebody stopped typing

let store;
let view = { me: 0, chat: 0, thread: null };
let context = null; // {kind: "reply" | "edit", message}
const messages = new Messages(byId("messages"), {
  reply: (message) => setContext({ kind: "reply", message }),
  edit: (message) => setContext({ kind: "edit", message }),
  remove: (message) => remove(message),
  react: (message, emoji) => doing("react", { message_id: message.message_id, emoji }),
  press: (message, data) => doing("press", { message_id: message.message_id, data }),
  command: (words) => doing("say", { text: words, thread_id: view.thread }),
});

const panel = new Panel(() => toast("The sandbox does not answer.", "bad"));
const trouble = new Trouble({ say: toast, place: () => view.chat });

// -- showing -----------------------------------------------------------------------------------------

async function start() {
  try {
    store = new Store(await loadState().then((state) => { start.state = state; return state; }));
  } catch {
    online(false);
    setTimeout(start, 1000);
    return;
  }
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
  const thread = view.thread ?? 0;
  if (byId("app").classList.toggle("in-chat", view.thread !== null)) grow();
  if (!document.hidden && (view.thread !== null || wide())) store.markSeen(view.chat, thread);
  showSidebar(store, { ...view, thread: view.thread ?? (wide() ? 0 : null) }, go);
  panel.settings(store.settings);
  trouble.show(store.flood, store.faults);
  messages.show(store, view.chat, thread, view.me);
  drawHeader(thread);
  if (jump) byId("scroll").scrollTop = byId("scroll").scrollHeight;
  drawToEnd();
}

function drawHeader(thread) {
  const chat = store.chats.get(view.chat);
  const topic = chat.topics.get(thread);
  const title = topic?.name ?? (chat.type === "private" ? "Main chat" : chat.has_topics ? "General" : chat.title);
  const typing = store.typing(keyOf(view.chat, thread)) ?? store.draft(keyOf(view.chat, thread));
  const place = chat.type === "private" ? `with ${store.bot.first_name}` : `${chat.title}, ${chat.members.length + 1} members`;
  byId("chat-name").textContent = title;
  document.title = `${title} · ${store.bot.first_name}`;
  const status = typing ? `${store.bot.first_name} is ${typing.action && typing.action !== "typing" ? typing.action.replaceAll("_", " ") : "typing"} …` : topic?.closed ? "closed" : place;
  if (byId("chat-status").textContent !== status) byId("chat-status").textContent = status;
  byId("chat-status").classList.toggle("typing-text", Boolean(typing));
  paintIcon(byId("chat-icon"), topic, title);
  const tools = topic ? [
    iconButton("pen", "Rename the thread", () => rename(topic)),
    chat.is_forum && iconButton(topic.closed ? "unlock" : "lock", topic.closed ? "Reopen the thread" : "Close the thread", () => doing(topic.closed ? "topics/reopen" : "topics/close", { thread_id: topic.thread_id })),
    iconButton("trash", "Delete the thread", () => removeTopic(topic)),
  ].filter(Boolean) : [];
  const signature = `${keyOf(view.chat, thread)}/${topic?.closed}/${topic?.name}`;
  if (byId("chat-tools").dataset.for !== signature) {
    byId("chat-tools").dataset.for = signature;
    byId("chat-tools").replaceChildren(...tools);
  }
}

function isAtEnd() {
  const box = byId("scroll");
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END;
}

function drawToEnd() {
  byId("to-end").hidden = isAtEnd();
}

// -- where one is ------------------------------------------------------------------------------------

function go(place) {
  keepDraft();
  view = { ...view, ...place };
  setContext(null);
  const hash = view.thread === null ? `#${view.me}/${view.chat}` : `#${view.me}/${view.chat}/${view.thread}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
  restoreDraft();
  draw({ jump: true });
  if (view.thread !== null && wide()) byId("composer-text").focus();
}

function readPlace() {
  const [me, chat, thread] = location.hash.slice(1).split("/").map(Number);
  const known = store.users.has(me) && store.chats.has(chat);
  view = known ? { me, chat, thread: Number.isInteger(thread) ? thread : null } : { me: store.owner, chat: store.owner, thread: null };
  if (view.thread && !store.chats.get(view.chat).topics.has(view.thread)) view.thread = null;
  restoreDraft();
}

const wide = () => matchMedia("(min-width: 721px)").matches;
const draftKey = () => `draft/${store.instance}/${view.me}/${keyOf(view.chat, view.thread)}`;

function keepDraft() {
  if (!context) sessionStorage.setItem(draftKey(), byId("composer-text").value);
}

function restoreDraft() {
  byId("composer-text").value = sessionStorage.getItem(draftKey()) ?? "";
  grow();
}

// -- what a person does ------------------------------------------------------------------------------

async function doing(name, fields) {
  try {
    return await act(name, { chat_id: view.chat, user_id: view.me, ...fields });
  } catch (error) {
    toast(error instanceof Refused ? error.message : "The sandbox does not answer.", "bad");
    return undefined;
  }
}

async function submit() {
  const box = byId("composer-text");
  const text = box.value;
  if (!text.trim()) return;
  const sent = context?.kind === "edit"
    ? await doing("edit", { message_id: context.message.message_id, text })
    : await doing("say", { text, thread_id: view.thread ?? 0, reply_to: context?.message.message_id ?? 0 });
  if (sent === undefined) return;
  context = null;
  box.value = "";
  setContext(null);
  keepDraft();
  grow();
  byId("scroll").scrollTop = byId("scroll").scrollHeight;
}

function setContext(next) {
  const box = byId("composer-text");
  if (context?.kind === "edit" && next?.kind !== "edit") box.value = "";
  context = next;
  byId("context").hidden = !next;
  byId("send-icon").setAttribute("href", next?.kind === "edit" ? "#i-check" : "#i-send");
  byId("send").setAttribute("aria-label", next?.kind === "edit" ? "Save" : "Send");
  if (next) {
    byId("context-icon").setAttribute("href", next.kind === "edit" ? "#i-pen" : "#i-reply");
    byId("context-title").textContent = next.kind === "edit" ? "Edit message" : `Reply to ${store.name(next.message.from.id)}`;
    byId("context-body").textContent = inWords(next.message);
    if (next.kind === "edit") box.value = next.message.text;
    box.focus();
  }
  grow();
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

function ask({ title, text, ok, field, danger = false }) {
  const dialog = byId("ask");
  byId("ask-title").textContent = title;
  byId("ask-text").textContent = text;
  byId("ask-text").hidden = !text;
  byId("ask-ok").textContent = ok;
  byId("ask-ok").classList.toggle("danger", danger);
  byId("ask-field").hidden = field === undefined;
  byId("ask-input").value = field ?? "";
  dialog.returnValue = "";
  dialog.showModal();
  if (field === undefined) byId("ask-ok").focus();
  else byId("ask-input").select();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      if (dialog.returnValue !== "ok") resolve(null);
      else resolve(field === undefined ? true : byId("ask-input").value);
    }, { once: true });
  });
}

function answered({ text, show_alert: alert }) {
  if (!text) return;
  if (alert) ask({ title: store.bot.first_name, text, ok: "OK" });
  else toast(text);
}

function toast(text, kind = "") {
  const note = el("div", { class: `toast ${kind}` }, text);
  byId("toasts").append(note);
  setTimeout(() => note.remove(), 4000);
}

function online(yes) {
  byId("banner").hidden = yes;
}

function grow() {
  const box = byId("composer-text");
  if (!box.offsetParent) return; // not shown, so there is nothing to measure
  box.style.setProperty("height", "auto");
  box.style.setProperty("height", `${Math.min(box.scrollHeight, 180)}px`);
}

// -- listening ---------------------------------------------------------------------------------------

byId("composer").addEventListener("submit", (event) => { event.preventDefault(); submit(); });
byId("composer-text").addEventListener("input", () => { keepDraft(); grow(); });
byId("composer-text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    submit();
  } else if (event.key === "Escape") {
    setContext(null);
  } else if (event.key === "ArrowUp" && !event.target.value) {
    const own = store.messages(view.chat, view.thread ?? 0).filter((message) => message.from.id === view.me && message.text).at(-1);
    if (own) { event.preventDefault(); setContext({ kind: "edit", message: own }); }
  }
});
byId("context-cancel").addEventListener("click", () => setContext(null));
byId("ask-cancel").addEventListener("click", () => byId("ask").close(""));
byId("new-thread").addEventListener("click", newThread);
byId("back").addEventListener("click", () => go({ thread: null }));
byId("to-end").addEventListener("click", () => byId("scroll").scrollTo({ top: byId("scroll").scrollHeight, behavior: "smooth" }));
byId("scroll").addEventListener("scroll", drawToEnd, { passive: true });
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
