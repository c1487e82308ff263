// Stores a copy of the running session: every half a minute, on request, and at the end. In the worker, so that it goes on
// while the page is hidden, and has a moment left when it is closed.

import { keepCopy } from "../copies";
import type { SaveInfo } from "./messages";

/** A closed tab has a copy that is at most so old. */
const EVERY_MS = 30_000;

export class Keeper {
  private timer: ReturnType<typeof setInterval> | undefined;
  private last = Promise.resolve<SaveInfo | null>(null);

  constructor(
    /** The bytes of a copy; none if there is nothing to keep. */
    private readonly copy: () => Uint8Array,
    /** What those say of themselves, as JSON. */
    private readonly describe: (bytes: Uint8Array) => string,
  ) {
    this.timer = setInterval(() => this.tryToKeep(), EVERY_MS);
  }

  /** Keeps a copy now; none if there is nothing to keep. One after the other: the newest is the last to be compared. */
  keep(): Promise<SaveInfo | null> {
    const bytes = this.copy() as Uint8Array<ArrayBuffer>;
    if (bytes.length === 0) return Promise.resolve(null);
    const info = JSON.parse(this.describe(bytes)) as SaveInfo;
    this.last = this.last.catch(() => null).then(() => keepCopy(info, bytes).then(() => info));
    return this.last;
  }

  /** Stores a last copy. */
  end(): void {
    if (this.timer === undefined) return;
    clearInterval(this.timer);
    this.timer = undefined;
    this.tryToKeep();
  }

  /** An automatic copy: a browser without storage is not reported. */
  private tryToKeep(): void {
    try {
      this.keep().catch(() => undefined);
    } catch {
      // The client has crashed, which is reported elsewhere.
    }
  }
}
