// The café bot with node-telegram-bot-api.
import { Bot, InlineKeyboardBuilder, InputFile } from "node-telegram-bot-api";

const { API_ROOT, TOKEN, PIXEL } = process.env;
const bot = new Bot(TOKEN, { apiRoot: API_ROOT });
const api = bot.api;
const receipts = new Map();

const order = async ({ chat }) => {
  const topic = await api.createForumTopic({ chat_id: chat.id, name: "Order" });
  await api.sendMessage({
    chat_id: chat.id, text: "What would you like?", message_thread_id: topic.message_thread_id,
    reply_markup: new InlineKeyboardBuilder().text("Tea", "order:Tea").text("Cake", "order:Cake").build(),
  });
};

const chosen = async (query, dish) => {
  const { chat, message_id } = query.message;
  await api.answerCallbackQuery({ callback_query_id: query.id, text: `${dish} it is` });
  await api.editMessageText({
    chat_id: chat.id, message_id, text: `${dish}, then.`,
    reply_markup: new InlineKeyboardBuilder().text("Receipt", `receipt:${dish}`).build(),
  });
};

const receipt = async (query, dish) => {
  const { chat, message_thread_id } = query.message;
  await api.answerCallbackQuery({ callback_query_id: query.id });
  await api.sendChatAction({ chat_id: chat.id, action: "upload_document", message_thread_id });
  const document = new InputFile(Buffer.from(`☕ ${dish}`), { filename: "receipt.txt" });
  const sent = await api.sendDocument({
    chat_id: chat.id, document, caption: "<b>Paid</b>", parse_mode: "HTML", message_thread_id,
  });
  receipts.set(message_thread_id, sent.message_id);
};

const reply = ({ chat, message_id, message_thread_id }, text) =>
  api.sendMessage({ chat_id: chat.id, text, message_thread_id, reply_parameters: { message_id } });

const received = async (message) => {
  const file = await api.getFile({ file_id: message.document.file_id });
  const answer = await fetch(`${API_ROOT}/file/bot${TOKEN}/${file.file_path}`);
  const content = Buffer.from(await answer.arrayBuffer());
  await reply(message, `Got ${content.length} bytes: ${content}`);
};

const album = ({ chat, message_thread_id }) => api.sendMediaGroup({
  chat_id: chat.id, message_thread_id,
  media: [1, 2].map((n) => ({
    type: "photo", media: new InputFile(Buffer.from(PIXEL, "base64"), { filename: `${n}.png` }),
    ...(n === 1 ? { caption: "Our tables" } : {}),
  })),
});

const done = async ({ chat, message_id, message_thread_id }) => {
  const paid = { chat_id: chat.id, message_id: receipts.get(message_thread_id) };
  await api.setMessageReaction({ chat_id: chat.id, message_id, reaction: [{ type: "emoji", emoji: "👍" }] });
  await api.pinChatMessage({ ...paid, disable_notification: true });
  await api.editMessageCaption({ ...paid, caption: "Paid. Thank you!" });
  await api.editForumTopic({ chat_id: chat.id, message_thread_id, name: "Order, done" });
};

const forget = ({ chat, message_thread_id }) => api.deleteForumTopic({ chat_id: chat.id, message_thread_id });

const texts = { album, done, "forget it": forget };
bot.command("order", (ctx) => order(ctx.message));
bot.on("message", (ctx) => (ctx.message.document ? received(ctx.message) : texts[ctx.message.text]?.(ctx.message)));
bot.on("edited_message", (ctx) => reply(ctx.update.edited_message, `Changed: ${ctx.update.edited_message.text}`));
bot.on("callback_query", (ctx) => {
  const [what, dish] = ctx.callbackQuery.data.split(":");
  return { order: chosen, receipt }[what](ctx.callbackQuery, dish);
});

await bot.startPolling();
