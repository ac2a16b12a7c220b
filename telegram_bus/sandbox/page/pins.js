// The pinned messages of a thread, in a bar above it: the newest first, each further press shows the one before.

import { inWords } from "/page/content.js";
import { byId } from "/page/dom.js";

export class Pins {
  constructor({ reveal, unpin }) {
    this.at = 0; // how many pinned messages before the newest
    this.pinned = [];
    byId("pin-show").addEventListener("click", () => {
      const shown = this.current();
      this.at = (this.at + 1) % this.pinned.length;
      this.draw();
      reveal(shown.message_id);
    });
    byId("pin-remove").addEventListener("click", () => unpin(this.current()));
  }

  show(key, pinned, mayUnpin) {
    if (key !== this.key || pinned.length !== this.pinned.length) this.at = 0;
    this.key = key;
    this.pinned = pinned;
    byId("pins").hidden = pinned.length === 0;
    byId("pin-remove").hidden = !mayUnpin;
    if (pinned.length) this.draw();
  }

  current() {
    return this.pinned.at(-1 - this.at);
  }

  draw() {
    const title = this.pinned.length > 1 ? `Pinned message ${this.pinned.length - this.at} of ${this.pinned.length}` : "Pinned message";
    byId("pin-title").textContent = title;
    byId("pin-text").textContent = inWords(this.current());
  }
}
