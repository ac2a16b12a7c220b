// Making trouble: flood control, faults to order, and what the server itself may do wrong.

import { act, Refused } from "/page/api.js";
import { byId, el, iconButton, Kept } from "/page/dom.js";

const LIMITS = {
  overall: ["All chats", "a second"],
  private: ["Private chat", "a second"],
  burst: ["Burst", "in a private chat"],
  group: ["Group", "a minute"],
};
const WAVE = { does: "refuse", threads: true, code: 400, description: "Bad Request: message thread not found" };
// What a person chooses → the order it means, and which further fields it has.
const KINDS = {
  refuse: ["Refuse it", { does: "refuse" }, ["code", "description"]],
  late: ["Answer late", { does: "answer" }, ["delay"]],
  drop: ["Do it, but drop the answer", { does: "drop" }, []],
  lose: ["Lose it on the way", { does: "drop", effect: false }, []],
  cut: ["Do it, but cut the answer in half", { does: "cut" }, []],
  hang: ["Never answer", { does: "hang" }, []],
  html: ["Answer with an error page", { does: "html", code: 502 }, []],
  wave: ["Thread not found", WAVE, []],
};

export class Trouble {
  constructor({ say, place }) {
    this.say = say;
    this.place = place; // gives the chat that is shown
    this.rows = new Kept(byId("faults"));
    this.limits = Object.entries(LIMITS).map(([name, [label, unit]]) => this.limit(name, label, unit));
    byId("flood-on").addEventListener("change", (event) => this.do("flood", { on: event.target.checked }));
    byId("flood-forget").addEventListener("click", () => this.do("flood", { forget: true }));
    byId("fault-kind").append(...Object.entries(KINDS).map(([name, [label]]) => el("option", { value: name }, label)));
    byId("fault-kind").addEventListener("change", () => this.fields());
    byId("fault-form").addEventListener("submit", (event) => { event.preventDefault(); this.order(); });
    byId("faults-cancel").addEventListener("click", () => this.do("faults/cancel", {}));
    byId("outage").addEventListener("click", () => this.outage());
    byId("repeat").addEventListener("click", () => this.repeat());
    byId("restart").addEventListener("click", () => this.restart());
    this.fields();
  }

  /** Show flood control and the faults as they are. */
  show(flood, faults) {
    byId("flood-on").checked = flood.on;
    this.limits.forEach(([name, box]) => { if (document.activeElement !== box) box.value = flood[name]; });
    const broken = Object.entries(flood.by_limit).filter(([, count]) => count).map(([name, count]) => `${name} ${count}`);
    const text = flood.violations ? `${flood.violations} too early: ${broken.join(", ")}` : "no call came too early";
    if (byId("flood-count").textContent !== text) byId("flood-count").textContent = text;
    byId("flood-count").classList.toggle("bad", flood.violations > 0);
    byId("flood-forget").hidden = !flood.violations;
    byId("faults-cancel").hidden = faults.length < 2;
    byId("faults-none").hidden = faults.length > 0;
    this.rows.show(faults.map((fault) => this.rows.node(fault.id, JSON.stringify(fault), () => this.row(fault))));
    byId("trouble-mark").hidden = !flood.on && !faults.length;
  }

  limit(name, label, unit) {
    const box = el("input", { type: "number", min: "0.01", step: "any", id: `flood-${name}`, onchange: () => this.do("flood", { [name]: Number(box.value) }) });
    byId("flood-limits").append(el("label", {}, el("span", {}, label, " ", el("small", {}, unit)), box));
    return [name, box];
  }

  row(fault) {
    const title = fault.description?.includes("thread not found") ? "thread not found" : sentence(fault);
    const left = fault.times === 0 ? "until cancelled" : fault.times ? `${fault.times} times` : "once";
    return el("li", { class: "fault" },
      el("span", { class: "fault-what" }, `${fault.method}: ${title}`),
      el("span", { class: "fault-left" }, `${left}${fault.chat_id ? ", one chat" : ""}, struck ${fault.struck}`),
      iconButton("close", `Cancel the fault ${fault.method}: ${title}`, () => this.do("faults/cancel", { id: fault.id })));
  }

  // Only the fields that the chosen kind has.
  fields() {
    const [, , shown] = KINDS[byId("fault-kind").value];
    document.querySelectorAll("[data-fault]").forEach((label) => { label.hidden = !shown.includes(label.dataset.fault); });
  }

  async order() {
    const [, meant, shown] = KINDS[byId("fault-kind").value];
    const order = { method: byId("fault-method").value.trim() || "calls", times: Number(byId("fault-times").value), ...meant };
    if (byId("fault-where").value === "here") order.chat_id = this.place();
    if (shown.includes("delay")) order.delay = Number(byId("fault-delay").value);
    if (shown.includes("code")) Object.assign(order, { code: Number(byId("fault-code").value), description: byId("fault-description").value.trim() });
    if (order.code === 429) order.parameters = { retry_after: Number(/\d+$/.exec(order.description)?.[0] ?? 3) };
    if (await this.do("faults/order", order)) this.say("Ordered.");
  }

  async outage() {
    const seconds = Number(byId("outage-seconds").value);
    if (await this.do("refuse-connections", { seconds })) this.say(`Connections are refused for ${seconds} s.`);
  }

  async repeat() {
    const done = await this.do("updates/repeat", { times: 1 });
    if (done) this.say(done.updates ? `The last ${done.updates} updates come again.` : "The bot got no updates yet.");
  }

  async restart() {
    const done = await this.do("updates/restart", {});
    if (done) this.say(done.waiting ? "Ids restart when nothing waits any more." : "The next update begins anew.");
  }

  async do(name, fields) {
    try {
      return await act(name, fields);
    } catch (error) {
      this.say(error instanceof Refused ? error.message : "The sandbox does not answer.", "bad");
      return undefined;
    }
  }
}

function sentence(fault) {
  switch (fault.does) {
    case "refuse": return `${fault.code ?? 500}${fault.description ? ` ${fault.description}` : ""}`;
    case "answer": return `answered ${fault.delay ?? fault.lag ?? 0} s later`;
    case "drop": return fault.effect === false ? "lost on the way" : "answer dropped";
    case "cut": return "answer cut";
    case "hang": return "never answered";
    default: return `error page ${fault.code ?? 502}`;
  }
}
