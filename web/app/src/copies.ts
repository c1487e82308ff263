// Copies of sessions in this browser's database: the last ten sessions. The bytes are those of a save, which native tools read as well.

import type { SaveInfo } from "./worker/messages";

export interface Copy extends SaveInfo {
  /** Build and session: copies of different builds are never compared. */
  key: string;
  bytes: Uint8Array<ArrayBuffer>;
}

const DATABASE = "sametick";
const STORE = "copies";
const NEWS = "sametick.copies";

/** As many sessions as a server keeps. */
export const MOST_COPIES = 10;

export function keyOf({ build, id }: Pick<SaveInfo, "build" | "id">): string {
  return `${build}/${id}`;
}

/** What is to be deleted so that not too many are left: those that were kept first. */
export function surplus<T extends { saved_unix_ms: number }>(copies: readonly T[], most = MOST_COPIES): T[] {
  return [...copies].sort((a, b) => b.saved_unix_ms - a.saved_unix_ms).slice(most);
}

/** The name of a file to download. */
export function fileName({ id }: Pick<SaveInfo, "id">): string {
  return `${id}.save`;
}

/** Keeps a copy, never in place of a newer one of the same session. */
export async function keepCopy(info: SaveInfo, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
  const key = keyOf(info);
  await use("readwrite", async (store) => {
    const there = await answer<Copy | undefined>(store.get(key));
    if (there && there.tick > info.tick) return;
    await answer(store.put({ ...info, key, bytes } satisfies Copy));
    const all = await answer<Copy[]>(store.getAll());
    await Promise.all(surplus(all).map((copy) => answer(store.delete(copy.key))));
  });
  const news = new BroadcastChannel(NEWS);
  news.postMessage(key);
  news.close();
}

/** Calls whenever a copy was kept, by any page or worker; returns what ends that. */
export function onKept(call: () => void): () => void {
  const news = new BroadcastChannel(NEWS);
  news.onmessage = call;
  return () => news.close();
}

/** All copies, the last one first. */
export async function listCopies(): Promise<Copy[]> {
  const copies = await use("readonly", (store) => answer<Copy[]>(store.getAll()));
  return copies.sort((a, b) => b.saved_unix_ms - a.saved_unix_ms);
}

export async function findCopy(key: string): Promise<Copy | undefined> {
  return use("readonly", (store) => answer<Copy | undefined>(store.get(key)));
}

export async function deleteCopy(key: string): Promise<void> {
  await use("readwrite", (store) => answer(store.delete(key)));
}

async function use<T>(mode: IDBTransactionMode, act: (store: IDBObjectStore) => Promise<T>): Promise<T> {
  const database = await open();
  try {
    const transaction = database.transaction(STORE, mode);
    const done = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("the browser keeps nothing"));
    });
    // The request reports a failure first.
    done.catch(() => undefined);
    const value = await act(transaction.objectStore(STORE));
    await done;
    return value;
  } finally {
    database.close();
  }
}

function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "key" });
  return answer(request);
}

function answer<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser keeps nothing"));
  });
}
