const BATCH_MAX_MESSAGES = 1000;
const BATCH_MAX_BYTES = 7 * 1024 * 1024; // the service accepts 8 MiB
const ABOUT_THE_REQUEST = new Set([400, 413, 415, 422, 429]);

/** With one, the next batch starts only after the answer to the last was read; more make smaller batches. */
const REQUESTS_UNDER_WAY = 2;

/** Joins calls of one operation. While requests are under way, further calls wait and travel together. */
export class SharedRequests {
  #post;
  #path;
  #waiting = [];
  #underWay = 0;

  constructor(post, path) {
    this.#post = post;
    this.#path = path;
  }

  /** Send an item, alone or with others; resolve to its own answer. */
  exchange(item) {
    return new Promise((resolve) => {
      this.#waiting.push({ ...item, resolve });
      if (this.#underWay < REQUESTS_UNDER_WAY) {
        this.#underWay++;
        setImmediate(() => this.#run()); // those who can go on now add their calls too
      }
    });
  }

  async #run() {
    while (this.#waiting.length > 0) {
      const items = this.#take();
      const answers = await this.#answers(items);
      items.forEach((item, place) => item.resolve(answers[place]));
      await new Promise(setImmediate);
    }
    this.#underWay--;
  }

  #take() {
    let count = 0;
    let size = 0;
    let sum = 0;
    for (const { batched, messages } of this.#waiting) {
      size += Buffer.byteLength(batched) + 1;
      sum += messages;
      if (count > 0 && (size > BATCH_MAX_BYTES || sum > BATCH_MAX_MESSAGES)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }

  async #answers(items) {
    const alone = () => Promise.all(items.map((item) => this.#post(item.path, item.alone)));
    if (items.length === 1) return alone();
    const answer = await this.#post(this.#path, `{"items":[${items.map((item) => item.batched).join(",")}]}`);
    if (ABOUT_THE_REQUEST.has(answer.status)) return alone(); // one of them, or their number, may have caused it
    if (answer.status !== 207) return items.map(() => answer);
    return answersIn(answer, items.length);
  }
}

/** Return each item's own answer. */
function answersIn({ members, retryAfterMs }, count) {
  const items = members?.items;
  if (items?.length !== count) {
    const error = new Error("a batch without an answer for each item");
    return Array(count).fill({ error, retryAfterMs });
  }
  return items.map(({ status, replayed, result, problem }) => ({
    status, replayed: replayed === true, members: result ?? problem, retryAfterMs,
  }));
}
