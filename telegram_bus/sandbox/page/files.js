// Files that a person is about to send: chosen, dropped or pasted, shown before the message box, kept over a reload.

import { byId, el, iconButton } from "/page/dom.js";
import { sizeInWords } from "/page/content.js";
import { Shelf } from "/page/shelf.js";

const MOST = 50_000_000; // bytes; a browser has to hold it as text as well
const MOST_PHOTO = 10 << 20; // greater pictures go as files, as in the apps
const ALBUM = 10;
const PHOTOS = new Set(["image/png", "image/jpeg", "image/webp", "image/bmp"]);

export class Files {
  constructor({ changed, say }) {
    this.changed = changed;
    this.say = say;
    this.shelf = new Shelf();
    this.key = null; // the place that is shown
    this.files = [];
    this.loading = Promise.resolve();
    byId("attach").addEventListener("click", () => byId("attach-input").click());
    byId("attach-input").addEventListener("change", (event) => { this.add([...event.target.files]); event.target.value = ""; });
    byId("composer-text").addEventListener("paste", (event) => {
      if (event.clipboardData.files.length === 0) return;
      event.preventDefault();
      this.add([...event.clipboardData.files]);
    });
    byId("as-files").addEventListener("change", () => this.draw());
    this.listenForDrops(byId("chat"));
  }

  /** Show what was chosen for another place. */
  open(key) {
    this.key = key;
    this.files = [];
    this.draw();
    this.loading = this.shelf.load(key).then((files) => {
      if (this.key !== key || files.length === 0) return;
      this.files = [...files, ...this.files];
      this.draw();
    });
  }

  add(files) {
    for (const file of files) {
      if (file.size === 0) this.say(`“${file.name}” is empty.`, "bad");
      else if (file.size > MOST) this.say(`“${file.name}” is larger than ${sizeInWords(MOST)}.`, "bad");
      else this.files.push(file);
    }
    this.keep();
    byId("composer-text").focus();
  }

  remove(files) {
    this.files = this.files.filter((file) => !files.includes(file));
    this.keep();
  }

  /** Files of a place that may not be shown any more were sent. */
  async gone(key, files) {
    if (key === this.key) return this.remove(files);
    const same = (one) => (other) => one.name === other.name && one.size === other.size && one.lastModified === other.lastModified;
    const kept = await this.shelf.load(key);
    return this.shelf.save(key, kept.filter((file) => !files.some(same(file))));
  }

  keep() {
    this.shelf.save(this.key, this.files);
    this.draw();
  }

  /** What is sent together: pictures and videos as albums, files and music apart, an animation alone. */
  batches() {
    const batches = [];
    for (const file of this.files) {
      const kind = this.kind(file);
      const sort = kind === "photo" || kind === "video" ? "pictures" : kind;
      const open = kind === "animation" ? undefined : batches.find((batch) => batch.sort === sort && batch.files.length < ALBUM);
      if (open) open.files.push({ file, kind });
      else batches.push({ sort, files: [{ file, kind }] });
    }
    return batches.map((batch) => batch.files);
  }

  kind(file) {
    if (byId("as-files").checked) return "document";
    if (PHOTOS.has(file.type) && file.size <= MOST_PHOTO) return "photo";
    if (file.type === "image/gif") return "animation";
    const [sort] = file.type.split("/");
    return sort === "video" || sort === "audio" ? sort : "document";
  }

  draw() {
    byId("tray-list").querySelectorAll("img").forEach((image) => URL.revokeObjectURL(image.src));
    byId("tray-list").replaceChildren(...this.files.map((file) => this.item(file)));
    byId("tray").hidden = this.files.length === 0;
    byId("as-files-label").hidden = !this.files.some((file) => /^(image|video|audio)\//.test(file.type));
    byId("composer-text").placeholder = this.files.length ? "Caption" : "Message";
    this.changed();
  }

  item(file) {
    const about = el("span", { class: "tray-name" }, el("strong", {}, file.name), el("small", {}, sizeInWords(file.size)));
    const picture = this.kind(file) === "photo" || this.kind(file) === "animation"
      ? el("img", { src: URL.createObjectURL(file), alt: "" })
      : el("span", { class: "tray-kind", "aria-hidden": "true" }, (file.name.split(".").slice(1).at(-1) ?? "file").slice(0, 4));
    return el("li", { title: file.name }, picture, about, iconButton("close", `Do not send ${file.name}`, () => { this.remove([file]); byId("composer-text").focus(); }));
  }

  listenForDrops(area) {
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    // Also beside the chat: a browser would leave the page for a file that is dropped there.
    addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      area.classList.toggle("dropping", area.contains(event.target) && !byId("attach").hidden);
    });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) area.classList.remove("dropping"); });
    addEventListener("drop", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault();
      const wanted = area.classList.contains("dropping");
      area.classList.remove("dropping");
      if (wanted) this.add([...event.dataTransfer.files]);
    });
  }
}

/** The bytes of a file as Base64. */
export function inBase64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}
