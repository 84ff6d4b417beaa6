/* The widget: sliders, what they mean as a timeline, and images per second. */

// Field, label, lowest, highest, unit.
const SLIDERS = [
  ["read_ms", "read a batch", 0, 400, "ms"],
  ["decode_ms", "decode a batch", 0, 400, "ms"],
  ["augment_ms", "augment a batch", 0, 400, "ms"],
  ["train_ms", "train on a batch", 1, 400, "ms"],
  ["cores", "cores", 1, 16, ""],
  ["parallel", "elements in parallel", 1, 16, ""],
  ["prefetch", "prefetch", 0, 8, ""],
];
const SWITCHES = [
  ["cache", "cache decoded images"],
  ["gpu", "the model trains on a GPU"],
];
// What the button sets, with the size of a batch.
const STAGES = ["read_ms", "decode_ms", "augment_ms", "train_ms", "cores", "gpu"];
// Name, top and height of each lane. Batches overlap where they are read or decoded, so
// there each second one lies a row lower.
const LANES = [
  ["read", 4, 30, 2], ["decode", 42, 30, 2], ["wait", 80, 24, 1], ["train", 110, 28, 1],
];
const LEFT = 62, RIGHT = 20, BOTTOM = 142, HEIGHT = 166;
const WITHOUT_NUMBER_PX = 17;
let count = 0;

const frame = (id, hasMeasured) => `
  <div class="perfkit-sliders">${SLIDERS.map(([name, label, low, high]) => `
    <label><span>${label}</span>
      <input type="range" name="${name}" min="${low}" max="${high}" step="1">
      <span class="perfkit-value" aria-hidden="true"></span></label>`).join("")}
  </div>
  <div class="perfkit-switches">${SWITCHES.map(([name, label]) => `
    <label><input type="checkbox" name="${name}">${label}</label>`).join("")}
    ${hasMeasured ? '<button type="button">use what was measured</button>' : ""}
  </div>
  <p class="perfkit-source" hidden></p>
  <p class="perfkit-rate"><b></b> <span></span></p>
  <p class="perfkit-why"></p>
  <svg role="img" height="${HEIGHT}"><defs>
    <pattern id="${id}-read" width="6" height="6" patternUnits="userSpaceOnUse">
      <rect width="6" height="6"/><circle cx="3" cy="3" r="1.6"/></pattern>
    <pattern id="${id}-wait" width="9" height="9" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
      <rect width="9" height="9"/><path d="M2.5 0V9" stroke-width="4"/></pattern>
    <pattern id="${id}-train" width="8" height="8" patternUnits="userSpaceOnUse">
      <rect width="8" height="8"/><path d="M0 4H8" stroke-width="1.6"/></pattern>
    </defs><g></g></svg>
  <p class="perfkit-note"></p>
  <p class="perfkit-spoken" role="status"></p>`;

const rounded = (value) => value.toLocaleString("en", { maximumSignificantDigits: 3 });

/* The largest of 1, 2 and 5 times a power of ten of which at least four fit in. */
const tickStep = (span) => {
  const power = 10 ** Math.floor(Math.log10(span / 4));
  return [5, 2, 1].map((n) => n * power).find((step) => step <= span / 4);
};

class SimulatorView {
  constructor(el, pipeline, measured) {
    Object.assign(this, { el, pipeline, measured });
    this.id = `perfkit-simulated-${(count += 1)}`;
    el.classList.add("perfkit-simulator");
    el.innerHTML = frame(this.id, Boolean(measured.pipeline));
    this.part = (name) => el.querySelector(name);
    // Keys move a slider, and no cell of JupyterLab, which asks what has the focus.
    for (const control of el.querySelectorAll("input, button")) {
      control.dataset.lmSuppressShortcuts = "true";
    }
    el.addEventListener("input", ({ target }) => this.set(target));
    // Read out once a slider rests, and not at each of its steps.
    el.addEventListener("change", () => this.tell());
    this.part("button")?.addEventListener("click", () => this.use());
    this.show();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(el);
    this.draw();
  }

  remove() { this.observer.disconnect(); }

  set({ name, type, checked, valueAsNumber }) {
    this.pipeline[name] = type === "checkbox" ? checked : valueAsNumber;
    // What was measured stands until a stage is another.
    if (STAGES.includes(name)) this.part(".perfkit-source").hidden = true;
    this.label();
    this.draw();
  }

  /* Set the stages to their measured times; how they are fed stays as it is. */
  use() {
    const { pipeline, square_ms, rates } = this.measured;
    for (const name of [...STAGES, "batch"]) this.pipeline[name] = pipeline[name];
    this.part(".perfkit-source").textContent = [
      "Each stage as measured by itself. Not measured, so 0: reading" +
        (pipeline.augment_ms ? "." : " and augmenting."),
      square_ms ? `Decoding only the cropped part takes ${rounded(square_ms)} ms.` : "",
      rates ? `Measured pipelines: ${rates} images/s.` : "",
    ].filter(Boolean).join(" ");
    this.part(".perfkit-source").hidden = false;
    this.show();
    this.draw();
    this.tell();
  }

  /* Put sliders and switches where the pipeline is. */
  show() {
    for (const [name, , , high] of SLIDERS) {
      const slider = this.part(`[name=${name}]`);
      slider.max = Math.max(high, Math.ceil(this.pipeline[name]));
      slider.value = this.pipeline[name];
    }
    for (const [name] of SWITCHES) this.part(`[name=${name}]`).checked = this.pipeline[name];
    this.label();
  }

  label() {
    for (const [name, , , , unit] of SLIDERS) {
      const slider = this.part(`[name=${name}]`);
      const text = `${rounded(this.pipeline[name])} ${unit}`.trim();
      slider.nextElementSibling.textContent = text;
      slider.setAttribute("aria-valuetext", text);
    }
  }

  draw() {
    const width = this.el.clientWidth, { pipeline } = this;
    const timeline = simulate(pipeline);
    const most = 1000 * pipeline.batch / pipeline.train_ms;
    this.part(".perfkit-rate b").textContent = `${rounded(timeline.rate)} images/s`;
    this.part(".perfkit-rate span").textContent =
      `of ${rounded(most)} without any input, in batches of ${pipeline.batch}`;
    this.part(".perfkit-why").textContent = reason(timeline, most);
    this.part(".perfkit-note").textContent = pipeline.cache
      ? `An epoch is ${EPOCH} batches here: after that nothing is read or decoded.` +
        (pipeline.augment_ms ? " The bars are augmentation." : "")
      : "Each bar is a batch, from its first image to its last.";
    this.part("svg").setAttribute("aria-label",
      `Timeline of ${BATCHES} batches. ${this.words()}`);
    if (width < LEFT + RIGHT + 40) return;
    this.part("svg").setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.part("svg g").innerHTML = this.picture(timeline, width);
  }

  words() {
    return [".perfkit-rate", ".perfkit-why"]
      .map((name) => this.part(name).textContent.trim()).join(". ");
  }

  tell() { this.part(".perfkit-spoken").textContent = this.words(); }

  /* As wide as it takes if one thing is done after another: what is saved stays empty. */
  picture(timeline, width) {
    const { read_ms, decode_ms, augment_ms, train_ms } = this.pipeline;
    const span = BATCHES * (read_ms + decode_ms + augment_ms + train_ms);
    const x = (ms) => LEFT + (width - LEFT - RIGHT) * ms / span;
    const bars = LANES.map(([lane, top, height, rows]) => {
      const fill = lane === "decode" ? "" : `fill="url(#${this.id}-${lane})"`;
      const each = height / rows;
      const drawn = timeline[lane].map((bar, number) => {
        // What takes no time is no bar, however long the batch around it takes.
        if (!bar || (lane === "read" && read_ms === 0)) return "";
        const [from, to] = bar.map(x), y = top + each * (number % rows);
        const rect = `<rect class="perfkit-${lane}" ${fill} x="${from.toFixed(1)}" ` +
          `y="${y}" width="${Math.max(1, to - from).toFixed(1)}" height="${each}"/>`;
        const hasNumber = lane !== "wait" && to - from >= WITHOUT_NUMBER_PX;
        return rect + (hasNumber ? `<text class="perfkit-number" x="${((from + to) / 2)
          .toFixed(1)}" y="${y + each / 2 + 4}">${number + 1}</text>` : "");
      });
      return `<text x="0" y="${top + height / 2 + 4}">${lane}</text>${drawn.join("")}`;
    });
    const step = tickStep(span), ticks = [];
    for (let ms = 0; ms <= span * 1.0001; ms += step) {
      const text = ms ? rounded(ms) : "0 ms";
      ticks.push(`<path class="perfkit-tick" d="M${x(ms).toFixed(1)} ${BOTTOM}v5"/>` +
        `<text class="perfkit-time" x="${x(ms).toFixed(1)}" y="${BOTTOM + 18}">${text}</text>`);
    }
    return `${bars.join("")}<path class="perfkit-tick" d="M${LEFT} ${BOTTOM}H${width - RIGHT}"/>` +
      ticks.join("");
  }
}

const reason = ({ rate, wait_share }, most) => {
  if (wait_share > 0.05) return `The model waits ${Math.round(100 * wait_share)} % of the time.`;
  if (most > 1.1 * rate) {
    return "The model hardly waits, but decoding takes its cores, so its steps get longer.";
  }
  return "The model hardly waits: a faster input would bring next to nothing.";
};

// One of these for each model: a view that is made again shows what was set.
export default () => {
  let pipeline;
  return {
    render({ model, el }) {
      pipeline ??= { ...model.get("start") };
      const view = new SimulatorView(el, pipeline, model.get("measured"));
      return () => view.remove();
    },
  };
};
