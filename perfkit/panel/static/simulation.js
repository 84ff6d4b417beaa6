/* The simulated pipeline; perfkit/panel/simulation.py describes its settings.

   It goes from event to event: an element has been read, an element has been decoded and
   augmented, a step has ended. Any number of elements can be read at the same time.
   Whatever computes gets an equal share of the cores: an element that is being decoded or
   augmented uses one, a training without a GPU all of them. */

// Batches that are drawn, and batches in an epoch; the rate is that of the batches after
// those that are drawn, up to the last. What ends within a nanosecond of an event ends
// with it.
const BATCHES = 12, EPOCH = 4, LAST = 36, SAME_MS = 1e-6;

/* What is first in, first out; nothing is moved. */
class Queue {
  items = [];
  head = 0;
  get length() { return this.items.length - this.head; }
  get first() { return this.items[this.head]; }
  push(item) { this.items.push(item); }
  shift() { return this.items[this.head++]; }
}

class Simulation {
  now = 0;
  // Core time that each decoding element has had since the start: all get the same.
  coreTime = 0;
  // The batch of each element in work, and when it ends; by core time if it decodes.
  reading = new Queue();
  decoding = new Queue();
  begun = 0;
  received = 0;
  stepMs = null;
  idleSince = 0;
  lanes = { read: [], decode: [], wait: [], train: [] };

  constructor(pipeline) {
    this.pipeline = pipeline;
    this.missing = Array(LAST + pipeline.prefetch + 1).fill(pipeline.batch);
  }

  run() {
    while (this.lanes.train.length < LAST || this.stepMs !== null) {
      this.begin();
      this.advance();
      this.end();
    }
  }

  begin() {
    const { prefetch, batch, parallel } = this.pipeline;
    for (;;) {
      const ahead = Math.max(prefetch, this.stepMs === null ? 1 : 0);
      const limit = (this.received + ahead) * batch;
      while (this.begun < limit && this.reading.length + this.decoding.length < parallel) {
        this.beginElement(Math.floor(this.begun / batch));
        this.begun += 1;
      }
      if (this.stepMs !== null || this.missing[this.received]) return;
      this.beginStep();
    }
  }

  beginElement(number) {
    if (this.isCached(number)) {
      this.beginDecoding(number);
      return;
    }
    this.open("read", number);
    this.reading.push([number, this.now + this.pipeline.read_ms / this.pipeline.batch]);
  }

  beginDecoding(number) {
    const { decode_ms, augment_ms, batch } = this.pipeline;
    const ms = augment_ms + (this.isCached(number) ? 0 : decode_ms);
    if (ms === 0) {
      this.missing[number] -= 1;
      return;
    }
    this.open("decode", number);
    this.decoding.push([number, this.coreTime + ms / batch]);
  }

  isCached(number) { return this.pipeline.cache && number >= EPOCH; }

  beginStep() {
    if (this.now - this.idleSince > SAME_MS) {
      this.lanes.wait[this.received] = [this.idleSince, this.now];
    }
    this.open("train", this.received);
    this.received += 1;
    this.stepMs = this.pipeline.train_ms;
  }

  advance() {
    const { cores, gpu } = this.pipeline, isTraining = this.stepMs !== null;
    const demand = this.decoding.length + (isTraining && !gpu ? cores : 0);
    const share = demand ? Math.min(1, cores / demand) : 1;
    const speed = gpu ? 1 : share;
    const spent = Math.max(0, Math.min(
      this.reading.length ? this.reading.first[1] - this.now : Infinity,
      this.decoding.length ? (this.decoding.first[1] - this.coreTime) / share : Infinity,
      isTraining ? this.stepMs / speed : Infinity,
    ));
    this.now += spent;
    this.coreTime += spent * share;
    if (isTraining) this.stepMs -= spent * speed;
  }

  end() {
    while (this.reading.length && this.reading.first[1] <= this.now + SAME_MS) {
      const [number] = this.reading.shift();
      this.close("read", number);
      this.beginDecoding(number);
    }
    while (this.decoding.length && this.decoding.first[1] <= this.coreTime + SAME_MS) {
      const [number] = this.decoding.shift();
      this.close("decode", number);
      this.missing[number] -= 1;
    }
    if (this.stepMs !== null && this.stepMs <= SAME_MS) {
      this.close("train", this.received - 1);
      this.stepMs = null;
      this.idleSince = this.now;
    }
  }

  open(lane, number) { this.lanes[lane][number] ??= [this.now, this.now]; }
  close(lane, number) { this.lanes[lane][number][1] = this.now; }
}

export const simulate = (pipeline) => {
  const simulation = new Simulation(pipeline);
  simulation.run();
  const { lanes } = simulation;
  const begin = lanes.train[BATCHES - 1][1], end = lanes.train[LAST - 1][1];
  let waited = 0;
  for (let number = BATCHES; number < LAST; number += 1) {
    const [since, until] = lanes.wait[number] ?? [0, 0];
    waited += until - since;
  }
  const drawn = Object.entries(lanes).map(([lane, spans]) =>
    [lane, Array.from({ length: BATCHES }, (_, number) => spans[number] ?? null)]);
  return {
    ...Object.fromEntries(drawn),
    rate: 1000 * (LAST - BATCHES) * pipeline.batch / (end - begin),
    wait_share: waited / (end - begin),
  };
};
