// The settings of the chat that is shown: what the bot and the people are in it, and what its owner can switch.

import { el, byId, Kept } from "/page/dom.js";

const STATUSES = { administrator: "an administrator", member: "an ordinary member", left: "not in the group", kicked: "put out of the group" };
const RIGHTS = {
  can_manage_topics: "Manage topics",
  can_pin_messages: "Pin messages",
  can_delete_messages: "Delete messages",
  can_change_info: "Change the group's info",
  can_invite_users: "Invite people",
  can_restrict_members: "Restrict members",
  can_promote_members: "Make administrators",
  can_manage_chat: "Manage the group",
};

export class Place {
  constructor(doing) {
    this.doing = doing; // name, fields; as the person who is shown unless they say otherwise
    this.rows = new Kept(byId("place-rows"));
  }

  show(store, { me, chat: chatId }) {
    const chat = store.chats.get(chatId);
    byId("place-title").textContent = chat.type === "private" ? `The chat with ${store.name(chatId)}` : chat.title;
    this.prefix = `${store.instance}/${chatId}/${me}/`;
    this.rows.show(chat.type === "private" ? [this.blocked(store, chatId)] : this.group(store, chat, me));
  }

  blocked(store, userId) {
    const user = store.users.get(userId);
    return this.flick("blocked", "The bot is blocked", `by ${user.first_name}; writing to it unblocks it`, Boolean(user.blocked), (blocked) => this.doing("block", { blocked }));
  }

  group(store, chat, me) {
    const owner = { user_id: store.owner };
    const setBot = (status, rights) => this.doing("chat/bot", { status, rights, ...owner });
    const rows = [this.title(chat, owner), this.status(chat, setBot)];
    if (chat.bot_status === "administrator") {
      for (const [right, label] of Object.entries(RIGHTS)) {
        rows.push(this.flick(right, label, "", chat.rights.includes(right), (on) =>
          setBot("administrator", on ? [...chat.rights, right] : chat.rights.filter((other) => other !== right)), chat.rights.join()));
      }
    }
    if (chat.type === "supergroup") rows.push(this.flick("forum", "Topics", "the group is a forum", Boolean(chat.is_forum), (forum) => this.doing("chat/forum", { forum, ...owner })));
    if (chat.is_forum) {
      const { closed, hidden } = chat.general;
      rows.push(this.flick("closed", "General is closed", "", closed, (on) => this.doing("chat/general", { closed: on, hidden: hidden && on, ...owner }), hidden));
      rows.push(this.flick("hidden", "General is hidden", "", hidden, (on) => this.doing("chat/general", { closed, hidden: on, ...owner }), closed));
    }
    if (me !== store.owner) rows.push(this.flick("member", `${store.name(me)} is a member`, "", chat.members.includes(me), (on) => this.doing(on ? "chat/join" : "chat/leave", {})));
    if (chat.type === "group" && !chat.migrated_to) {
      rows.push(this.row("migrate", "", () => el("div", { class: "line" }, el("span", {}, "An ordinary group"),
        el("button", { class: "text-button", type: "button", onclick: () => this.doing("chat/migrate", owner) }, "Make it a supergroup"))));
    }
    return rows;
  }

  title(chat, owner) {
    return this.row("title", chat.title, () => el("form", {
      class: "line", onsubmit: (event) => { event.preventDefault(); this.doing("chat/title", { title: event.target.elements.title.value, ...owner }); },
    },
    el("input", { name: "title", value: chat.title, maxLength: 128, "aria-label": "Title of the group", class: "grows" }),
    el("button", { class: "text-button", type: "submit" }, "Rename")));
  }

  status(chat, setBot) {
    return this.row("status", chat.bot_status, () => {
      const choices = Object.entries(STATUSES).map(([value, label]) => el("option", { value, selected: value === chat.bot_status }, label));
      const select = el("select", { onchange: async () => { if (await setBot(select.value) === undefined) select.value = chat.bot_status; } }, choices);
      return el("label", { class: "line" }, el("span", {}, "The bot is"), select);
    });
  }

  // The switch moves when the sandbox says so, not before.
  flick(name, label, hint, on, act, depends = "") {
    return this.row(name, `${on} ${label} ${depends}`, () => el("label", { class: "switch" },
      el("span", {}, label, hint && el("small", {}, ` ${hint}`)),
      el("input", { type: "checkbox", role: "switch", checked: on, onclick: (event) => { event.preventDefault(); act(!on); } })));
  }

  row(name, look, make) {
    return this.rows.node(this.prefix + name, look, make);
  }
}
