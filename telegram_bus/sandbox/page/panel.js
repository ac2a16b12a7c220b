// Behind the scenes: what the bot calls, as the sandbox recorded it, and the bot's settings.

import { act, loadCalls } from "/page/api.js";
import { byId, el, Kept } from "/page/dom.js";

const SHOWN = 150; // entries in the list; the search looks at all that were loaded
const LOADED = 2000;
const SWITCHES = {
  threaded_mode: ["Threaded Mode", "private chats have threads"],
  users_create_topics: ["People make threads", "in private chats"],
  privacy: ["Privacy mode", "in groups the bot sees only what is meant for it"],
};
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export class Panel {
  constructor(failed) {
    this.failed = failed;
    this.entries = new Map(); // number → entry
    this.rows = new Kept(byId("calls"));
    this.version = 0;
    this.running = 0;
    byId("panel-open").addEventListener("click", () => this.toggle(byId("panel").hidden));
    byId("panel-close").addEventListener("click", () => { this.toggle(false); byId("panel-open").focus(); });
    byId("panel").addEventListener("keydown", (event) => { if (event.key === "Escape") byId("panel-close").click(); });
    byId("calls-search").addEventListener("input", () => this.draw());
    byId("calls-polls").addEventListener("change", () => this.draw());
  }

  toggle(open) {
    byId("panel").hidden = !open;
    byId("panel-open").setAttribute("aria-expanded", String(open));
    byId("app").classList.toggle("with-panel", open);
    this.running += 1;
    if (open) {
      byId("calls-search").focus();
      this.follow(this.running);
    }
  }

  /** Show the settings as they are. */
  settings(settings) {
    if (!this.boxes) {
      this.boxes = Object.entries(SWITCHES).map(([name, [label, hint]]) => {
        const box = el("input", { type: "checkbox", role: "switch", id: `switch-${name}`, onchange: () => act("settings", { [name]: box.checked }).catch(this.failed) });
        byId("switches").append(el("label", { class: "switch" }, el("span", {}, label, el("small", {}, hint)), box));
        return [name, box];
      });
    }
    this.boxes.forEach(([name, box]) => { box.checked = settings[name]; });
  }

  /** Forget what another sandbox recorded. */
  restart() {
    this.entries.clear();
    this.rows.clear();
    this.version = 0;
    if (!byId("panel").hidden) this.toggle(true);
  }

  // Waits for news as long as the panel is open; a later opening replaces this one.
  async follow(turn) {
    while (turn === this.running) {
      try {
        const news = await loadCalls(this.version);
        if (turn !== this.running) return;
        news.entries.forEach((entry) => this.entries.set(entry.n, entry));
        [...this.entries.keys()].slice(0, -LOADED).forEach((number) => this.entries.delete(number));
        this.version = news.version;
        this.draw();
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
    }
  }

  draw() {
    const words = byId("calls-search").value.trim().toLowerCase();
    const polls = byId("calls-polls").checked;
    const wanted = [...this.entries.values()]
      .filter((entry) => (polls || entry.kind === "call") && (!words || JSON.stringify(entry).toLowerCase().includes(words)))
      .slice(-SHOWN).reverse();
    const rows = wanted.map((entry) => this.rows.node(entry.n, entry.version, (old) => row(entry, old)));
    const none = this.entries.size ? "Nothing matches." : "The bot has not called yet.";
    if (rows.length === 0) rows.push(this.rows.node("none", none, () => el("li", { class: "no-calls" }, none)));
    this.rows.show(rows);
  }
}

function row(entry, old) {
  const open = old?.querySelector("details").open ?? false;
  const answer = entry.ok ? JSON.stringify(entry.result, null, 2) : `${entry.code} ${entry.description}`;
  return el("li", {}, el("details", { open, class: entry.ok === false ? "call refused" : "call" },
    el("summary", {},
      el("span", { class: "call-name" }, entry.method),
      el("span", { class: "call-state" }, stateOf(entry)),
      el("span", { class: "call-hint" }, hintOf(entry)),
      el("time", { class: "call-time" }, clock.format(new Date(entry.began_at * 1000)))),
    el("pre", { tabIndex: 0 }, JSON.stringify(entry.params, null, 2)),
    entry.ended !== null && el("pre", { tabIndex: 0 }, answer)));
}

function stateOf(entry) {
  if (entry.disconnected !== null) return "hung up";
  if (entry.ended === null) return "waiting";
  return entry.ok ? duration(entry.ended - entry.began) : String(entry.code);
}

function hintOf(entry) {
  if (entry.ok === false) return entry.description;
  if (entry.kind === "poll") return entry.result?.length ? `${entry.result.length} updates` : "";
  return entry.params.text ?? entry.params.name ?? entry.params.action ?? "";
}

const duration = (seconds) => (seconds < 1 ? `${Math.max(0.1, seconds * 1000).toFixed(1)} ms` : `${seconds.toFixed(1)} s`);
