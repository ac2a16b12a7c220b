// Where chosen files wait over a reload: IndexedDB, by tab and place. Without it (private windows) they are lost then.

const NAME = "sandbox-files";
const STORE = "files";
const WEEK = 7 * 86_400_000; // milliseconds that files of closed tabs stay

export class Shelf {
  constructor() {
    this.tab = sessionStorage.getItem("tab") ?? crypto.randomUUID();
    sessionStorage.setItem("tab", this.tab);
    this.opened = open().then((base) => { forget(base); return base; }).catch(() => null);
  }

  async load(place) {
    const base = await this.opened;
    const found = base && await done(base.transaction(STORE).objectStore(STORE).get(`${this.tab}/${place}`)).catch(() => null);
    return found?.files ?? [];
  }

  async save(place, files) {
    const base = await this.opened;
    if (!base) return;
    const store = base.transaction(STORE, "readwrite").objectStore(STORE);
    const key = `${this.tab}/${place}`;
    await done(files.length ? store.put({ files, at: Date.now() }, key) : store.delete(key)).catch(() => null);
  }
}

function open() {
  const request = indexedDB.open(NAME, 1);
  request.addEventListener("upgradeneeded", () => request.result.createObjectStore(STORE));
  return done(request);
}

function done(request) {
  return new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error));
  });
}

function forget(base) {
  const cursors = base.transaction(STORE, "readwrite").objectStore(STORE).openCursor();
  cursors.addEventListener("success", () => {
    const cursor = cursors.result;
    if (!cursor) return;
    if (cursor.value.at < Date.now() - WEEK) cursor.delete();
    cursor.continue();
  });
}
