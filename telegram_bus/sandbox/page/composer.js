// The message box: what a person is writing, answering or editing in each place; nothing of it is lost.

import { toast } from "/page/ask.js";
import { inWords } from "/page/content.js";
import { byId } from "/page/dom.js";
import { Files, inBase64 } from "/page/files.js";
import { keyOf } from "/page/store.js";

const HIGHEST = 180; // pixels of the box

export class Composer {
  constructor({ place, doing, sent }) {
    this.place = place; // gives {store, me, chat, thread}
    this.doing = doing;
    this.sent = sent;
    this.context = null; // {kind: "reply" | "edit", message, before}: before is what was written when an edit began
    this.sending = false;
    this.files = new Files({ changed: () => this.grow(), say: toast });
    byId("composer").addEventListener("submit", (event) => { event.preventDefault(); this.submit(); });
    byId("composer-text").addEventListener("input", () => { this.keep(); this.grow(); });
    byId("composer-text").addEventListener("keydown", (event) => this.key(event));
    byId("context-cancel").addEventListener("click", () => this.set(null));
    byId("obstacle-button").addEventListener("click", () => this.doing(byId("obstacle-button").dataset.doing, {}));
  }

  reply(message) {
    this.set({ kind: "reply", message });
  }

  edit(message) {
    this.set({ kind: "edit", message, before: this.context?.kind === "edit" ? this.context.before : byId("composer-text").value });
    byId("composer-text").value = message.text ?? message.caption ?? "";
    this.keep();
    this.grow();
  }

  /** Show what is being written in the place that is shown now. */
  open() {
    const { store, chat } = this.place();
    const kept = JSON.parse(sessionStorage.getItem(this.draftKey()) ?? "{}");
    const message = kept.message && store.find(chat, kept.message);
    // The message that was edited may be gone.
    byId("composer-text").value = (kept.kind === "edit" && !message ? kept.before : kept.text) ?? "";
    this.context = message ? { kind: kept.kind, message, before: kept.before } : null;
    this.draw();
    this.files.open(this.draftKey());
  }

  /** What is shown when somebody cannot write here. */
  allow() {
    const { store, me, chat, thread } = this.place();
    const obstacle = store.obstacle(chat, thread, me);
    byId("obstacle").hidden = !obstacle;
    byId("composer-row").hidden = Boolean(obstacle);
    byId("obstacle-text").textContent = obstacle?.reason ?? "";
    byId("obstacle-button").hidden = !obstacle?.doing;
    if (obstacle?.label) byId("obstacle-button").textContent = obstacle.label;
    byId("obstacle-button").dataset.doing = obstacle?.doing ?? "";
  }

  grow() {
    const box = byId("composer-text");
    if (!box.offsetParent) return; // not shown, so there is nothing to measure
    box.style.setProperty("height", "auto");
    box.style.setProperty("height", `${Math.min(box.scrollHeight, HIGHEST)}px`);
  }

  draftKey() {
    const { store, me, chat, thread } = this.place();
    return `draft/${store.bot.id}/${me}/${keyOf(chat, thread)}`;
  }

  keep() {
    const { kind, message, before } = this.context ?? {};
    const text = byId("composer-text").value;
    sessionStorage.setItem(this.draftKey(), JSON.stringify({ text, kind, message: message?.message_id, before }));
  }

  set(next) {
    const box = byId("composer-text");
    if (this.context?.kind === "edit" && next?.kind !== "edit") box.value = this.context.before ?? "";
    this.context = next;
    this.draw();
    this.keep();
    if (next) box.focus();
  }

  draw() {
    const editing = this.context?.kind === "edit";
    byId("context").hidden = !this.context;
    byId("attach").hidden = editing;
    byId("send-icon").setAttribute("href", editing ? "#i-check" : "#i-send");
    byId("send").setAttribute("aria-label", editing ? "Save" : "Send");
    if (this.context) {
      byId("context-icon").setAttribute("href", editing ? "#i-pen" : "#i-reply");
      byId("context-title").textContent = editing ? "Edit message" : `Reply to ${this.place().store.name(this.context.message.from.id)}`;
      byId("context-body").textContent = inWords(this.context.message);
    }
    this.grow();
  }

  key(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      this.submit();
    } else if (event.key === "Escape" && this.context) {
      this.set(null);
    } else if (event.key === "ArrowUp" && !event.target.value) {
      const { store, me, chat, thread } = this.place();
      const own = store.messages(chat, thread).filter((message) => message.from.id === me && (message.text || message.caption)).at(-1);
      if (own) { event.preventDefault(); this.edit(own); }
    }
  }

  async submit() {
    if (this.sending) return;
    this.sending = true;
    byId("send").setAttribute("aria-busy", "true");
    const before = byId("composer-text").value;
    const key = this.draftKey();
    try {
      if (!await this.send(before)) return;
    } finally {
      this.sending = false;
      byId("send").removeAttribute("aria-busy");
    }
    if (key !== this.draftKey()) { // somewhere else meanwhile
      sessionStorage.removeItem(key);
      return;
    }
    if (this.context?.kind === "edit") this.set(null);
    else if (byId("composer-text").value === before) byId("composer-text").value = "";
    this.set(null);
    this.sent();
  }

  // Gives whether all went out.
  async send(text) {
    const { thread } = this.place();
    if (this.context?.kind === "edit") return await this.doing("edit", { message_id: this.context.message.message_id, text }) !== undefined;
    await this.files.loading;
    const reply = this.context?.message.message_id ?? 0;
    if (this.files.files.length) return this.sendFiles(text, thread, reply);
    if (!text.trim()) return false;
    return await this.doing("say", { text, thread_id: thread, reply_to: reply }) !== undefined;
  }

  async sendFiles(caption, thread, reply) {
    // The caption is the first file's; what was sent leaves the tray even if the rest is refused.
    const { chat, me } = this.place();
    const [key, where] = [this.draftKey(), { thread_id: thread, chat_id: chat, user_id: me }];
    let first = true;
    for (const batch of this.files.batches()) {
      const files = [];
      for (const { file, kind } of batch) files.push({ kind, name: file.name, content: await inBase64(file), caption: first && files.length === 0 ? caption : "" });
      if (await this.doing("send", { ...where, files, reply_to: first ? reply : 0 }) === undefined) return false;
      await this.files.gone(key, batch.map(({ file }) => file));
      if (first && key === this.draftKey()) byId("composer-text").value = "";
      first = false;
    }
    return true;
  }
}
