// The café bot with telegraf.
import { Markup, Telegraf } from "telegraf";
import { message, editedMessage } from "telegraf/filters";

const { API_ROOT, TOKEN, PIXEL } = process.env;
const bot = new Telegraf(TOKEN, { telegram: { apiRoot: API_ROOT } });
const receipts = new Map();

bot.command("order", async (ctx) => {
  const topic = await ctx.telegram.createForumTopic(ctx.chat.id, "Order");
  await ctx.telegram.sendMessage(ctx.chat.id, "What would you like?", {
    message_thread_id: topic.message_thread_id,
    ...Markup.inlineKeyboard([
      Markup.button.callback("Tea", "order:Tea"), Markup.button.callback("Cake", "order:Cake"),
    ]),
  });
});

bot.action(/^order:(.+)$/, async (ctx) => {
  const dish = ctx.match[1];
  await ctx.answerCbQuery(`${dish} it is`);
  await ctx.editMessageText(`${dish}, then.`, Markup.inlineKeyboard([Markup.button.callback("Receipt", `receipt:${dish}`)]));
});

bot.action(/^receipt:(.+)$/, async (ctx) => {
  const thread = ctx.callbackQuery.message.message_thread_id;
  await ctx.answerCbQuery();
  await ctx.telegram.sendChatAction(ctx.chat.id, "upload_document", { message_thread_id: thread });
  const file = { source: Buffer.from(`☕ ${ctx.match[1]}`), filename: "receipt.txt" };
  const sent = await ctx.telegram.sendDocument(ctx.chat.id, file, {
    caption: "<b>Paid</b>", parse_mode: "HTML", message_thread_id: thread,
  });
  receipts.set(thread, sent.message_id);
});

const answering = (message) => ({
  message_thread_id: message.message_thread_id, reply_parameters: { message_id: message.message_id },
});

bot.on(editedMessage("text"), (ctx) => ctx.reply(`Changed: ${ctx.editedMessage.text}`, answering(ctx.editedMessage)));

bot.on(message("document"), async (ctx) => {
  const answer = await fetch(await ctx.telegram.getFileLink(ctx.message.document.file_id));
  const content = Buffer.from(await answer.arrayBuffer());
  await ctx.reply(`Got ${content.length} bytes: ${content}`, answering(ctx.message));
});

bot.hears("album", (ctx) => ctx.replyWithMediaGroup([1, 2].map((n) => ({
  type: "photo", media: { source: Buffer.from(PIXEL, "base64"), filename: `${n}.png` },
  ...(n === 1 ? { caption: "Our tables" } : {}),
})), { message_thread_id: ctx.message.message_thread_id }));

bot.hears("done", async (ctx) => {
  const thread = ctx.message.message_thread_id;
  await ctx.react("👍");
  await ctx.telegram.pinChatMessage(ctx.chat.id, receipts.get(thread), { disable_notification: true });
  await ctx.telegram.editMessageCaption(ctx.chat.id, receipts.get(thread), undefined, "Paid. Thank you!");
  await ctx.telegram.editForumTopic(ctx.chat.id, thread, { name: "Order, done" });
});

bot.hears("forget it", (ctx) => ctx.telegram.deleteForumTopic(ctx.chat.id, ctx.message.message_thread_id));

await bot.launch();
