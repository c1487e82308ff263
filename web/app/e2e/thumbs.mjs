// Fingers on a page's glass: a test driver can only tap.

export class Thumbs {
  #session;
  #down = new Map();

  static async on(page) {
    const thumbs = new Thumbs();
    thumbs.#session = await page.context().newCDPSession(page);
    return thumbs;
  }

  /** Puts a finger down, or moves it. */
  async put(finger, { x, y }) {
    const type = this.#down.has(finger) ? "touchMove" : "touchStart";
    this.#down.set(finger, { x, y, id: finger });
    await this.#send(type);
  }

  async lift(finger) {
    this.#down.delete(finger);
    await this.#send("touchEnd");
  }

  #send(type) {
    return this.#session.send("Input.dispatchTouchEvent", { type, touchPoints: [...this.#down.values()] });
  }
}
