// What the page knows: a copy of the sandbox's chats that follows its changes. No DOM here.

export class Store {
  constructor(state) {
    this.instance = state.instance;
    this.bot = state.bot;
    this.owner = state.owner_id;
    this.forum = state.forum_id;
    this.group = state.group_id;
    this.settings = state.settings;
    this.flood = state.flood;
    this.faults = state.faults;
    this.users = new Map(state.users.map((user) => [user.id, user]));
    this.chats = new Map(state.chats.map((chat) => [chat.id, inMaps(chat)]));
    this.actions = new Map(); // thread key → {action, until}
    this.drafts = new Map(); // thread key → {text, entities, until}
    this.pressed = new Map(); // callback id → {chat, message, data, until}
    this.seen = this.loadSeen();
    state.recent.forEach((change) => {
      if (change.kind !== "message") this.apply(change);
      else if (change.message.by_bot) this.written(keyOf(change.chat_id, threadOf(change.message)));
    });
  }

  /** Follow a change; returns the key of the thread it concerns, if any. */
  apply(change) {
    const chat = this.chats.get(change.chat_id);
    switch (change.kind) {
      case "message":
      case "edit": {
        const key = keyOf(chat.id, threadOf(change.message));
        put(chat, change.message);
        if (change.kind === "message" && change.message.by_bot) this.written(key);
        return key;
      }
      case "delete":
        change.message_ids.forEach((id) => chat.threads.forEach((messages) => messages.delete(id)));
        chat.pinned = chat.pinned.filter((id) => !change.message_ids.includes(id));
        return undefined;
      case "topic":
        chat.topics.set(change.topic.thread_id, change.topic);
        return keyOf(chat.id, change.topic.thread_id);
      case "topic_deleted":
        chat.topics.delete(change.thread_id);
        chat.threads.delete(change.thread_id);
        return keyOf(chat.id, change.thread_id);
      case "action":
        if (change.action === "cancel") this.actions.delete(keyOf(chat.id, change.thread_id));
        else this.actions.set(keyOf(chat.id, change.thread_id), change);
        return keyOf(chat.id, change.thread_id);
      case "draft":
        this.drafts.set(keyOf(chat.id, change.thread_id), change);
        return keyOf(chat.id, change.thread_id);
      case "draft_stopped":
        this.drafts.delete(keyOf(chat.id, change.thread_id));
        return keyOf(chat.id, change.thread_id);
      case "pins":
        chat.pinned = change.message_ids;
        return undefined;
      case "user":
        Object.assign(this.users.get(change.user_id), change);
        return undefined;
      case "callback":
        this.pressed.set(change.id, change);
        return undefined;
      case "callback_answer":
        this.pressed.delete(change.id);
        return undefined;
      case "chat":
        Object.assign(chat, change.chat, { bot_status: change.bot_status, rights: change.rights, members: change.members, general: change.general, migrated_to: change.migrated_to });
        chat.has_topics = chat.type === "private" ? this.settings.threaded_mode : Boolean(change.chat.is_forum);
        if (change.migrated_to && this.group === chat.id) this.group = change.migrated_to;
        return undefined;
      case "new_chat":
        this.chats.set(change.chat_id, inMaps(change.chat));
        return undefined;
      case "settings":
        Object.assign(this.settings, change);
        this.chats.forEach((item) => { if (item.type === "private") item.has_topics = this.settings.threaded_mode; });
        return undefined;
      case "flood":
        this.flood = change.flood;
        return undefined;
      case "faults":
        this.faults = change.faults;
        return undefined;
      default:
        return undefined;
    }
  }

  // What the bot was doing in a thread is over: it wrote.
  written(key) {
    this.actions.delete(key);
    this.drafts.delete(key);
  }

  /** Messages of a thread, oldest first; thread 0 is outside all topics, and everything where there are none. */
  messages(chatId, thread) {
    const chat = this.chats.get(chatId);
    if (!chat) return [];
    if (chat.has_topics || chat.threads.size < 2) return [...(chat.threads.get(thread)?.values() ?? [])];
    return [...chat.threads.values()].flatMap((messages) => [...messages.values()]).sort((one, other) => one.message_id - other.message_id);
  }

  /** A message, wherever in the chat it is. */
  find(chatId, messageId) {
    for (const messages of this.chats.get(chatId)?.threads.values() ?? []) {
      if (messages.has(messageId)) return messages.get(messageId);
    }
    return undefined;
  }

  /** The pinned messages of a thread, oldest first. */
  pinned(chatId, thread) {
    const pins = new Set(this.chats.get(chatId)?.pinned);
    return pins.size ? this.messages(chatId, thread).filter((message) => pins.has(message.message_id)) : [];
  }

  /** The buttons that wait for an answer, as chat/message/data. */
  waiting() {
    return new Set([...this.pressed.values()].filter((press) => press.until * 1000 > Date.now())
      .map((press) => `${press.chat_id}/${press.message_id}/${press.data}`));
  }

  /** How a thread is called. */
  title(chatId, thread) {
    const chat = this.chats.get(chatId);
    const topic = chat.has_topics && chat.topics.get(thread);
    if (topic) return topic.name;
    return chat.type === "private" ? "Main chat" : chat.has_topics ? chat.general.name : chat.title;
  }

  /** Why a person cannot write here, and the control's doing that mends it; nothing when they can. */
  obstacle(chatId, thread, me) {
    const chat = this.chats.get(chatId);
    const name = this.name(me);
    if (this.users.get(me).deactivated) return { reason: `${name} deleted their account.` };
    if (chat.migrated_to) return { reason: "This group became a supergroup." };
    if (!chat.members.includes(me)) return { reason: `${name} is not in this group.`, label: "Join", doing: "chat/join" };
    const topic = chat.topics.get(thread);
    if (me === this.owner || chat.type === "private" || !chat.has_topics) return undefined;
    if (topic?.closed || (!topic && chat.general.closed)) return { reason: "The thread is closed; only the owner can write here." };
    return undefined;
  }

  /** The main chat and the topics, those with news first. */
  threads(chatId) {
    const chat = this.chats.get(chatId);
    const entry = (thread, topic) => {
      const messages = this.messages(chatId, thread);
      const last = messages.at(-1);
      const seen = this.seenUpTo(chatId, thread);
      let unread = 0;
      for (let index = messages.length - 1; index >= 0 && messages[index].message_id > seen; index -= 1) {
        if (messages[index].by_bot && !isService(messages[index])) unread += 1;
      }
      return { thread, topic, last, unread, key: keyOf(chatId, thread) };
    };
    const topics = (chat.has_topics ? [...chat.topics.values()] : []).map((topic) => entry(topic.thread_id, topic));
    topics.sort((one, other) => (other.last?.message_id ?? 0) - (one.last?.message_id ?? 0));
    return [entry(0, null), ...topics];
  }

  name(userId) {
    return userId === this.bot.id ? this.bot.first_name : this.users.get(userId)?.first_name ?? "Somebody";
  }

  typing(key) {
    return alive(this.actions, key);
  }

  draft(key) {
    return alive(this.drafts, key);
  }

  seenUpTo(chatId, thread) {
    return this.seen[keyOf(chatId, thread)] ?? 0;
  }

  markSeen(chatId, thread) {
    const last = this.messages(chatId, thread).at(-1)?.message_id ?? 0;
    if (last <= this.seenUpTo(chatId, thread)) return;
    this.seen[keyOf(chatId, thread)] = last;
    sessionStorage.setItem("seen", JSON.stringify({ bot: this.bot.id, seen: this.seen }));
  }

  loadSeen() {
    const kept = JSON.parse(sessionStorage.getItem("seen") ?? "{}");
    return kept.bot === this.bot.id ? kept.seen : {};
  }
}

// A thread of replies is no topic and shows in the chat.
const threadOf = (message) => (message.is_topic_message ? message.message_thread_id : 0);

export const keyOf = (chatId, thread) => `${chatId}/${thread ?? 0}`;

const SERVICES = {
  forum_topic_created: (fact) => `created the thread “${fact.name}”`,
  forum_topic_edited: (fact) => (fact.name ? `renamed the thread to “${fact.name}”` : "changed the thread's icon"),
  forum_topic_closed: () => "closed the thread",
  forum_topic_reopened: () => "reopened the thread",
  general_forum_topic_hidden: () => "hid the thread General",
  general_forum_topic_unhidden: () => "showed the thread General again",
  pinned_message: () => "pinned a message",
  new_chat_title: (title) => `called the group “${title}”`,
  new_chat_photo: () => "changed the group's picture",
  delete_chat_photo: () => "removed the group's picture",
  new_chat_members: (users, by) => (users.some((user) => user.id === by.id) ? "joined" : `brought in ${users.map((user) => user.first_name).join(", ")}`),
  left_chat_member: (user, by) => (user.id === by.id ? "left" : `put out ${user.first_name}`),
  migrate_to_chat_id: () => "made this group a supergroup",
  migrate_from_chat_id: () => "made this supergroup of a group",
};

export const isService = (message) => Object.keys(SERVICES).some((name) => name in message);

export function serviceText(message) {
  const name = Object.keys(SERVICES).find((item) => item in message);
  return SERVICES[name](message[name], message.from);
}

function inMaps(chat) {
  const topics = new Map(chat.topics.map((topic) => [topic.thread_id, topic]));
  const mapped = { ...chat, topics, threads: new Map() }; // threads: thread → message id → message
  chat.messages.forEach((message) => put(mapped, message));
  delete mapped.messages;
  return mapped;
}

function put(chat, message) {
  const thread = threadOf(message);
  if (!chat.threads.has(thread)) chat.threads.set(thread, new Map());
  chat.threads.get(thread).set(message.message_id, message);
}

function alive(map, key) {
  const found = map.get(key);
  if (found && found.until * 1000 > Date.now()) return found;
  map.delete(key);
  return undefined;
}
