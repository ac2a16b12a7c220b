// The café bot with grammY.
import { Bot, InlineKeyboard, InputFile, InputMediaBuilder } from "grammy";

const { API_ROOT, TOKEN, PIXEL } = process.env;
const bot = new Bot(TOKEN, { client: { apiRoot: API_ROOT } });
const receipts = new Map();

bot.command("order", async (ctx) => {
  const topic = await ctx.api.createForumTopic(ctx.chat.id, "Order");
  await ctx.api.sendMessage(ctx.chat.id, "What would you like?", {
    message_thread_id: topic.message_thread_id,
    reply_markup: new InlineKeyboard().text("Tea", "order:Tea").text("Cake", "order:Cake"),
  });
});

bot.callbackQuery(/^order:(.+)$/, async (ctx) => {
  const dish = ctx.match[1];
  await ctx.answerCallbackQuery({ text: `${dish} it is` });
  await ctx.editMessageText(`${dish}, then.`, {
    reply_markup: new InlineKeyboard().text("Receipt", `receipt:${dish}`),
  });
});

bot.callbackQuery(/^receipt:(.+)$/, async (ctx) => {
  const thread = ctx.callbackQuery.message.message_thread_id;
  await ctx.answerCallbackQuery();
  await ctx.api.sendChatAction(ctx.chat.id, "upload_document", { message_thread_id: thread });
  const file = new InputFile(Buffer.from(`☕ ${ctx.match[1]}`), "receipt.txt");
  const sent = await ctx.api.sendDocument(ctx.chat.id, file, {
    caption: "<b>Paid</b>", parse_mode: "HTML", message_thread_id: thread,
  });
  receipts.set(thread, sent.message_id);
});

const answering = (message) => ({
  message_thread_id: message.message_thread_id, reply_parameters: { message_id: message.message_id },
});

bot.on("edited_message:text", (ctx) => ctx.reply(`Changed: ${ctx.editedMessage.text}`, answering(ctx.editedMessage)));

bot.on("message:document", async (ctx) => {
  const file = await ctx.getFile();
  const answer = await fetch(`${API_ROOT}/file/bot${TOKEN}/${file.file_path}`);
  const content = Buffer.from(await answer.arrayBuffer());
  await ctx.reply(`Got ${content.length} bytes: ${content}`, answering(ctx.message));
});

bot.hears("album", (ctx) => ctx.replyWithMediaGroup([1, 2].map((n) =>
  InputMediaBuilder.photo(new InputFile(Buffer.from(PIXEL, "base64"), `${n}.png`), n === 1 ? { caption: "Our tables" } : {})),
  { message_thread_id: ctx.message.message_thread_id }));

bot.hears("done", async (ctx) => {
  const thread = ctx.message.message_thread_id;
  await ctx.react("👍");
  await ctx.api.pinChatMessage(ctx.chat.id, receipts.get(thread), { disable_notification: true });
  await ctx.api.editMessageCaption(ctx.chat.id, receipts.get(thread), { caption: "Paid. Thank you!" });
  await ctx.api.editForumTopic(ctx.chat.id, thread, { name: "Order, done" });
});

bot.hears("forget it", (ctx) => ctx.api.deleteForumTopic(ctx.chat.id, ctx.message.message_thread_id));

await bot.start();
