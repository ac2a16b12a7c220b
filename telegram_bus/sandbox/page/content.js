// What a message shows beside its text: pictures, files, places.

import { el } from "/page/dom.js";

const FILES = ["animation", "video", "audio", "voice", "video_note", "sticker", "document"];
const WORDS = { animation: "Animation", video: "Video", audio: "Audio", voice: "Voice message", video_note: "Video message", sticker: "Sticker", document: "File" };

const HIGHEST = 320; // pixels of a picture in the chat

const address = (file) => `/sandbox/file/${file.file_id}`;

/** A length as people read it. */
export function sizeInWords(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

function picture(photo, caption) {
  const best = photo.at(-1);
  const scale = Math.min(1, HIGHEST / best.height); // the room is there before the picture is
  return el("a", { class: "picture", href: address(best), target: "_blank", rel: "noopener" },
    el("img", { src: address(best), alt: caption || "Picture", width: Math.round(best.width * scale), height: Math.round(best.height * scale), loading: "lazy" }));
}

function file(kind, about) {
  const name = about.file_name ?? about.title ?? about.emoji ?? WORDS[kind];
  return el("a", { class: "file", href: address(about), download: about.file_name ?? "", "aria-label": `${WORDS[kind]} ${name}` },
    el("strong", {}, name), el("span", {}, `${WORDS[kind]}, ${sizeInWords(about.file_size)}`));
}

// What the page can play itself; the sandbox gives only such types to be shown.
const PLAYED = { "audio/ogg": "audio", "audio/mpeg": "audio", "video/mp4": "video" };

function media(kind, about) {
  const tag = PLAYED[about.mime_type ?? (kind === "video_note" ? "video/mp4" : "")];
  if (!tag) return [file(kind, about)];
  const player = el(tag, { class: "player", controls: true, preload: "none", src: address(about), "aria-label": `${WORDS[kind]} ${about.file_name ?? ""}`.trim() });
  return [player, file(kind, about)];
}

/** Elements for everything that is neither text nor a poll; none for a text. */
export function contents(message) {
  if (message.photo) return [picture(message.photo, message.caption)];
  const kind = FILES.find((name) => name in message);
  if (kind) return media(kind, message[kind]);
  const line = oneLine(message);
  return line ? [el("div", { class: "text" }, line)] : [];
}

/** A message in a few words, for quotes and lists. */
export function inWords(message) {
  const words = message.text ?? message.caption;
  if (words) return words;
  if (message.photo) return "Picture";
  const kind = FILES.find((name) => name in message);
  return kind ? message[kind].file_name ?? WORDS[kind] : message.poll?.question ?? oneLine(message);
}

function oneLine(message) {
  if (message.venue) return `📍 ${message.venue.title}, ${message.venue.address}`;
  if (message.location) return `📍 ${message.location.latitude}, ${message.location.longitude}`;
  if (message.contact) return `👤 ${message.contact.first_name}, ${message.contact.phone_number}`;
  if (message.dice) return `${message.dice.emoji} ${message.dice.value}`;
  return "";
}
