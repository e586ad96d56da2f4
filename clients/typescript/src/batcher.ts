/** Many callers, few requests: items that come while others are under way share the next request. */

export interface BatcherOptions<In, Out> {
  /** Sends items together; the results are in the same order. */
  send(items: In[]): Promise<Out[]>;
  /** The bytes an item adds to a request. */
  bytes(item: In): number;
  itemsMax: number;
  bytesMax: number;
  /** Requests under way at once; the more there are, the smaller each is. */
  requestsMax: number;
}

interface Waiting<In, Out> {
  item: In;
  resolve: (result: Out) => void;
  reject: (error: unknown) => void;
}

export class Batcher<In, Out> {
  readonly #options: BatcherOptions<In, Out>;
  #waiting: Waiting<In, Out>[] = [];
  #requests = 0;
  #isScheduled = false;

  constructor(options: BatcherOptions<In, Out>) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.#requests === 0;
  }

  add(item: In): Promise<Out> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      this.#schedule();
    });
  }

  /** Sends after everything that is runnable now has had its turn to add an item. */
  #schedule(): void {
    if (this.#isScheduled || this.#requests >= this.#options.requestsMax) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#sendNext();
    });
  }

  #sendNext(): void {
    const batch = this.#take();
    if (batch.length === 0) return;
    this.#requests++;
    this.#options
      .send(batch.map((waiting) => waiting.item))
      .then(
        (results) => batch.forEach((waiting, index) => waiting.resolve(results[index] as Out)),
        (error: unknown) => batch.forEach((waiting) => waiting.reject(error)),
      )
      .finally(() => {
        this.#requests--;
        if (this.#waiting.length > 0) this.#schedule();
      });
    if (this.#waiting.length > 0) this.#schedule();
  }

  #take(): Waiting<In, Out>[] {
    const { itemsMax, bytesMax, bytes } = this.#options;
    let count = 0;
    let total = 0;
    for (const { item } of this.#waiting) {
      total += bytes(item);
      if (count === itemsMax || (count > 0 && total > bytesMax)) break;
      count++;
    }
    return this.#waiting.splice(0, count);
  }
}
