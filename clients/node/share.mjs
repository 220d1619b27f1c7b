const REQUEST_MAX_MESSAGES = 1000;
const REQUEST_MAX_BYTES = 7 * 1024 * 1024; // the service accepts 8 MiB

/** Joins calls of one operation. While a request is under way, further calls wait and travel together. */
export class SharedRequests {
  #post;
  #waiting = [];
  #isUnderWay = false;

  constructor(post) {
    this.#post = post;
  }

  /** Send an item, alone or with others; resolve to its own answer. */
  share(body, messages) {
    return new Promise((resolve) => {
      this.#waiting.push({ body, messages, resolve });
      if (!this.#isUnderWay) {
        this.#isUnderWay = true;
        setImmediate(() => this.#run()); // those who can go on now add their calls too
      }
    });
  }

  async #run() {
    while (this.#waiting.length > 0) {
      await this.#exchange(this.#take());
      await new Promise(setImmediate);
    }
    this.#isUnderWay = false;
  }

  #take() {
    let [count, messages, size] = [0, 0, 0];
    for (const item of this.#waiting) {
      messages += item.messages;
      size += Buffer.byteLength(item.body) + 1;
      if (count > 0 && (messages > REQUEST_MAX_MESSAGES || size > REQUEST_MAX_BYTES)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  /** If a request is refused as a whole, one item or their number may be the cause: then each is sent by itself. */
  async #exchange(items) {
    const answer = await this.#post(`{"items":[${items.map((item) => item.body).join(",")}]}`);
    if (items.length > 1 && answer.status >= 400 && answer.status < 500) {
      await Promise.all(items.map((item) => this.#exchange([item])));
      return;
    }
    const own = answer.items?.length === items.length ? answer.items : [];
    items.forEach((item, place) => item.resolve(own[place] ?? answer));
  }
}
