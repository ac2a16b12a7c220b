// Behind the scenes: what the bot calls, as the sandbox recorded it, the bot's settings, and the tabs for them.

import { act, findCalls, loadCalls } from "/page/api.js";
import { byId, el, Kept } from "/page/dom.js";

const SHOWN = 150; // entries in the list
const LOADED = 500; // kept for the list at once; the search asks the sandbox
const PAUSE = 150; // milliseconds of no typing until the sandbox is asked
// What can be shown of the record: whether an entry is, and how the sandbox is asked for it.
const FILTERS = {
  all: [() => true, {}],
  refused: [(entry) => entry.ok === false, { ok: "false" }],
  fault: [(entry) => entry.fault !== null, { fault: "any" }],
  flood: [(entry) => entry.flood !== null, { flood: "any" }],
  gone: [(entry) => entry.disconnected !== null, { disconnected: "true" }],
};
const TABS = ["calls", "trouble", "settings"];
const SWITCHES = {
  threaded_mode: ["Threaded Mode", "private chats have threads"],
  users_create_topics: ["People make threads", "in private chats"],
  privacy: ["Privacy mode", "in groups the bot sees only what is meant for it"],
  topic_cache: ["Cached topics", "for a minute a deleted thread still takes the bot's messages"],
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
    this.found = new Map(); // what the sandbox found beside the entries that were loaded
    byId("calls-search").addEventListener("input", () => this.seek());
    byId("calls-filter").addEventListener("change", () => this.seek());
    byId("calls-polls").addEventListener("change", () => this.seek());
    TABS.forEach((name) => byId(`tab-${name}`).addEventListener("click", () => this.tab(name)));
    byId("panel-tabs").addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) this.tab(TABS[(TABS.indexOf(this.shown) + step + TABS.length) % TABS.length], true);
    });
    this.tab("calls");
  }

  tab(chosen, focus = false) {
    this.shown = chosen;
    TABS.forEach((name) => {
      byId(`tab-${name}`).setAttribute("aria-selected", String(name === chosen));
      byId(`tab-${name}`).tabIndex = name === chosen ? 0 : -1;
      byId(`panel-${name}`).hidden = name !== chosen;
    });
    if (focus) byId(`tab-${chosen}`).focus();
  }

  toggle(open) {
    byId("panel").hidden = !open;
    byId("panel-open").setAttribute("aria-expanded", String(open));
    byId("app").classList.toggle("with-panel", open);
    this.running += 1;
    if (open) {
      byId(`tab-${this.shown}`).focus();
      this.follow(this.running);
    }
  }

  /** Show the settings as they are. */
  settings(settings) {
    if (!this.boxes) {
      this.boxes = Object.entries(SWITCHES).map(([name, [label, hint]]) => {
        const box = el("input", { type: "checkbox", role: "switch", id: `switch-${name}`, onchange: () => act("settings", { [name]: box.checked }).catch(this.failed) });
        byId("switches").append(el("label", { class: "switch" }, el("span", {}, label, " ", el("small", {}, hint)), box));
        return [name, box];
      });
    }
    this.boxes.forEach(([name, box]) => { box.checked = settings[name]; });
  }

  /** Forget what another sandbox recorded. */
  restart() {
    this.entries.clear();
    this.found.clear();
    this.rows.clear();
    this.version = 0;
    if (!byId("panel").hidden) this.toggle(true);
  }

  // Waits for news as long as the panel is open; a later opening replaces this one.
  async follow(turn) {
    while (turn === this.running) {
      try {
        const news = await loadCalls(this.version, LOADED);
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

  // Shows what is loaded at once, and asks the sandbox for what came long before.
  seek() {
    this.found.clear();
    this.draw();
    clearTimeout(this.asking);
    const [words, filter, polls] = [byId("calls-search").value.trim(), byId("calls-filter").value, byId("calls-polls").checked];
    if (!words && filter === "all") return;
    this.asking = setTimeout(async () => {
      const asked = this.asking;
      const wanted = { newest: SHOWN, ...FILTERS[filter][1], ...(words && { search: words }), ...(!polls && { kind: "call" }) };
      try {
        const found = await findCalls(wanted);
        if (asked !== this.asking) return;
        found.forEach((entry) => this.found.set(entry.n, entry));
        this.draw();
      } catch {
        this.failed();
      }
    }, PAUSE);
  }

  draw() {
    const words = byId("calls-search").value.trim().toLowerCase();
    const polls = byId("calls-polls").checked;
    const [fits] = FILTERS[byId("calls-filter").value];
    const all = new Map([...this.found, ...this.entries]);
    const wanted = [...all.values()]
      .filter((entry) => (polls || entry.kind === "call") && fits(entry) && (!words || this.found.has(entry.n) || JSON.stringify(entry).toLowerCase().includes(words)))
      .sort((one, other) => one.n - other.n).slice(-SHOWN).reverse();
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
      el("span", { class: "call-hint" }, entry.fault && el("span", { class: "mark" }, FAULTS[entry.fault.does]), entry.flood && el("span", { class: "mark" }, `too fast: ${entry.flood}`), hintOf(entry)),
      el("time", { class: "call-time" }, clock.format(new Date(entry.began_at * 1000)))),
    el("pre", { tabIndex: 0 }, JSON.stringify(entry.params, null, 2)),
    entry.ended !== null && el("pre", { tabIndex: 0 }, answer)));
}

const FAULTS = { answer: "late", refuse: "to order", drop: "dropped", cut: "cut", hang: "hangs", html: "error page" };

function stateOf(entry) {
  if (entry.disconnected !== null) return "hung up";
  if (entry.ended === null) return "waiting";
  if (entry.ok === null) return "lost";
  return entry.ok ? duration(entry.ended - entry.began) : String(entry.code);
}

function hintOf(entry) {
  if (entry.ok === false) return entry.description;
  if (entry.kind === "poll") return entry.result?.length ? `${entry.result.length} updates` : "";
  return entry.params.text ?? entry.params.name ?? entry.params.action ?? "";
}

const duration = (seconds) => (seconds < 1 ? `${Math.max(0.1, seconds * 1000).toFixed(1)} ms` : `${seconds.toFixed(1)} s`);
