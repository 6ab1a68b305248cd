/** Requests per minute of one page. The server allows 1,200 per credential: two tabs and the rest of the page fit in. */
export const REQUESTS_PER_MINUTE = 480;
/** Requests that may follow each other at once before the rate is kept. */
export const BURST = 40;
/** Answers that are remembered, so that going back and forth asks nothing. */
export const MOST_ANSWERS = 16;
/** An answer older than this is asked for again: the node has newer samples. */
const FRESH_MS = 60_000;

interface Remembered<Answer> {
  answer: Answer;
  atMs: number;
}

/**
 * The newest answers by their question; the one that was not asked for longest goes first, and one that is not fresh is
 * no answer.
 */
export class Answers<Answer> {
  private readonly kept = new Map<string, Remembered<Answer>>();

  constructor(private readonly now: () => number) {}

  get size(): number {
    return this.kept.size;
  }

  get(question: string): Answer | undefined {
    const found = this.kept.get(question);
    if (!found) return undefined;
    this.kept.delete(question);
    if (this.now() - found.atMs > FRESH_MS) return undefined;
    this.kept.set(question, found);
    return found.answer;
  }

  put(question: string, answer: Answer): void {
    this.kept.delete(question);
    this.kept.set(question, { answer, atMs: this.now() });
    for (const oldest of this.kept.keys()) {
      if (this.kept.size <= MOST_ANSWERS) break;
      this.kept.delete(oldest);
    }
  }
}

/** A token bucket: `BURST` requests at once, then one after the other at the rate. */
class Pace {
  private tokens = BURST;
  private filledAtMs: number;

  constructor(private readonly now: () => number) {
    this.filledAtMs = now();
  }

  /** How long the next request has to wait; 0: it may go, and is counted. */
  takeOrWaitMs(): number {
    const perMs = REQUESTS_PER_MINUTE / 60_000;
    const at = this.now();
    this.tokens = Math.min(BURST, this.tokens + (at - this.filledAtMs) * perMs);
    this.filledAtMs = at;
    if (this.tokens >= 1) {
      this.tokens -= 1;
      return 0;
    }
    return Math.ceil((1 - this.tokens) / perMs);
  }
}

interface AskerOptions<Input, Answer> {
  request: (input: Input, signal: AbortSignal) => Promise<Answer>;
  /** What makes two inputs one question. */
  keyOf: (input: Input) => string;
  /** Whether an answer to `old` is of no use any more once `wanted` is asked: another node was chosen. */
  isUseless: (old: Input, wanted: Input) => boolean;
  answered: (input: Input, answer: Answer | null, error: unknown) => void;
  now?: () => number;
}

/**
 * Asks for one answer at a time: the newest input as soon as the request under way is answered. A request is never given
 * up for a newer input of the same kind, so that answers keep coming however slow they are and however fast the edits;
 * what was asked between is skipped.
 */
export class Asker<Input, Answer> {
  private readonly answers: Answers<Answer>;
  private readonly pace: Pace;
  private wanted: Input | null = null;
  /** `isOld`: what was remembered was told since. */
  private flying: { input: Input; stop: AbortController; isOld: boolean } | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly options: AskerOptions<Input, Answer>) {
    const now = options.now ?? (() => performance.now());
    this.answers = new Answers(now);
    this.pace = new Pace(now);
  }

  want(input: Input): void {
    this.wanted = input;
    const known = this.answers.get(this.options.keyOf(input));
    if (known !== undefined) {
      this.wanted = null;
      if (this.flying) this.flying.isOld = true;
      this.options.answered(input, known, null);
      return;
    }
    if (this.flying && this.options.isUseless(this.flying.input, input)) this.drop();
    this.next();
  }

  /** Nothing is asked or answered any more until the next `want`. */
  stop(): void {
    this.wanted = null;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.drop();
  }

  private drop(): void {
    this.flying?.stop.abort();
    this.flying = null;
  }

  private next(): void {
    if (this.flying || this.wanted === null || this.timer !== undefined) return;
    const waitMs = this.pace.takeOrWaitMs();
    if (waitMs > 0) {
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.next();
      }, waitMs);
      return;
    }
    const input = this.wanted;
    this.wanted = null;
    const stop = new AbortController();
    this.flying = { input, stop, isOld: false };
    this.options.request(input, stop.signal).then(
      (answer) => this.arrived(stop, input, answer, null),
      (error: unknown) => this.arrived(stop, input, null, error),
    );
  }

  private arrived(stop: AbortController, input: Input, answer: Answer | null, error: unknown): void {
    if (this.flying?.stop !== stop) return;
    const { isOld } = this.flying;
    this.flying = null;
    if (answer !== null) this.answers.put(this.options.keyOf(input), answer);
    if (!isOld) this.options.answered(input, answer, error);
    this.next();
  }
}
