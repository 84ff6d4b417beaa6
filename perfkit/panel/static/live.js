/* The widget: what a run does, its two plots and the table that names their lines. */

const FRAME = `
  <p class="perfkit-state" role="status"></p>
  <p class="perfkit-doing" hidden>
    <progress max="1" aria-label="Share of the run that is done"></progress>
    <span class="perfkit-left"></span><span class="perfkit-said"></span>
  </p>
  <div class="perfkit-drawn" hidden>
    <p class="perfkit-readout"></p>
    <div class="perfkit-plots" role="img">
      <div class="perfkit-rates"></div>
      <div class="perfkit-busy"></div>
    </div>
    <p class="perfkit-below">Lower plot: the share of the machine that is busy, and its speed.</p>
    <ul class="perfkit-load"></ul>
    <div class="perfkit-table"><table>
      <thead><tr><th scope="col">variant</th><th scope="col" class="perfkit-measure"></th></tr></thead>
      <tbody></tbody>
    </table></div>
  </div>`;
const NAMES = {
  "examples/s": "Examples per second",
  "of its own rate": "Each rung as a share of its own rate",
};
const hint = (measure, wide) =>
  `${NAMES[measure] ?? measure}${wide ? ", logarithmic" : ""}: a dot is a turn, a bar ` +
  "the 95 % interval after a round.";

// Pixels: a turn further away is not what the cursor is on.
const NEAR = 40;

class View {
  constructor(model, el, points, doing) {
    Object.assign(this, { model, el, points, doing });
    el.classList.add("perfkit-live");
    el.innerHTML = FRAME;
    this.part = (name) => el.querySelector(name);
    this.plots = [];
    this.dirty = false;
    this.visible = false;
    this.observers = [
      // Scrolled away, it draws nothing; the first call comes once it is on the page.
      new IntersectionObserver((seen) => {
        this.visible = seen.at(-1).isIntersecting;
        nameSliders(el.closest(".perfkit-panel"));
        if (this.visible && this.dirty) this.later();
      }),
      new ResizeObserver(() => this.fit()),
      new MutationObserver(() => this.rebuild()),
    ];
    this.observers[0].observe(el);
    this.observers[1].observe(el);
    this.observers[2].observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
    this.tell();
    this.rebuild();
  }

  remove() {
    this.observers.forEach((observer) => observer.disconnect());
    this.plots.forEach(({ plot }) => plot.destroy());
  }

  /* Asked for as often as there is news; done once per picture of the screen. */
  later() {
    this.dirty = true;
    if (this.asked || !this.visible) return;
    this.asked = requestAnimationFrame(() => {
      this.asked = undefined;
      this.dirty = false;
      this.draw();
    });
  }

  draw() {
    this.tell();
    const empty = this.points.total === 0;
    this.el.dataset.rows = this.points.total;
    this.part(".perfkit-drawn").hidden = empty;
    if (empty) return;
    if (!this.plots.length || !this.plots.every(({ fits }) => fits())) this.build();
    this.plots.forEach(({ plot, columns }) => plot.setData(columns()));
    this.fit();
    this.fillTable();
    this.fillLoad();
  }

  tell() {
    const { said = "", left = "", share } = this.doing();
    this.write(".perfkit-state", this.model.get("state"));
    this.part(".perfkit-doing").hidden = share === undefined;
    this.part("progress").value = share ?? 0;
    this.write(".perfkit-left", left);
    this.write(".perfkit-said", said);
    this.part(".perfkit-plots").setAttribute("aria-label", this.model.get("words"));
  }

  /* A part that says the same is left alone: screen readers read every change. */
  write(name, text) {
    if (this.part(name).textContent !== text) this.part(name).textContent = text;
  }

  rebuild() {
    this.plots.forEach(({ plot }) => plot.destroy());
    this.plots = [];
    this.later();
  }

  build() {
    this.plots.forEach(({ plot }) => plot.destroy());
    const what = {
      points: this.points,
      variants: this.model.get("variants"),
      load: this.model.get("load"),
      baseline: this.model.get("baseline"),
      guess: () => this.model.get("guess"),
      span: () => this.model.get("span"),
      sync: uPlot.sync(`perfkit-${Math.random()}`).key,
      move: (plot) => this.read(plot),
    };
    this.plots = [
      ratesPlot(this.part(".perfkit-rates"), what),
      loadPlot(this.part(".perfkit-busy"), what),
    ];
    this.write(".perfkit-readout", hint(this.model.get("measure"), this.plots[0].wide));
  }

  fit() {
    const width = this.part(".perfkit-plots").clientWidth;
    for (const { plot } of this.plots) {
      if (width > 80 && width !== plot.width) plot.setSize({ width, height: plot.height });
    }
  }

  fillTable() {
    this.write(".perfkit-measure", `${this.model.get("measure")} so far (95 % interval)`);
    const { variant: guessed } = this.model.get("guess");
    const rows = this.model.get("variants").map((name, place) => {
      const estimate = this.points.estimatesOf(place).at(-1);
      const text = rateText(estimate, this.points.latest(1 + place));
      const own = name === guessed ? ", your guess" : "";
      return [name + own, text, lookOf(place)];
    });
    fill(this.part("tbody"), rows, ([name, text, look]) => {
      const row = document.createElement("tr");
      row.innerHTML = `<th scope="row">${sampleOf(look)}<span></span></th><td></td>`;
      row.querySelector("span").textContent = name;
      row.querySelector("td").textContent = text;
      return row;
    });
  }

  fillLoad() {
    const first = 1 + this.model.get("variants").length;
    const lines = this.model.get("load").map((name, place) => {
      const { colour, dash } = lookOf(place);
      const value = this.points.latest(first + place);
      return [`${name} ${value === undefined ? "" : percent(value)}`, { colour, dash }];
    });
    fill(this.part(".perfkit-load"), lines, ([text, look]) => {
      const item = document.createElement("li");
      item.innerHTML = `${sampleOf(look)}<span></span>`;
      item.querySelector("span").textContent = text;
      return item;
    });
  }

  /* What the cursor is on, in words and with units. */
  read(plot) {
    const { idx, left, top } = plot.cursor;
    if (idx === null || idx === undefined || left < 0) {
      this.write(".perfkit-readout", hint(this.model.get("measure"), this.plots[0]?.wide));
      return;
    }
    const variants = this.model.get("variants");
    const parts = [`${this.points.columns[0][idx].toFixed(1)} s`];
    const nearest = this.nearest(plot === this.plots[0]?.plot ? { left, top } : { left });
    if (nearest) parts.push(`${variants[nearest.place]}: ${number(nearest.rate)} ${this.model.get("measure")}`);
    this.model.get("load").forEach((name, place) => {
      const value = this.points.columns[1 + variants.length + place][idx];
      if (value !== null) parts.push(`${name} ${percent(value)}`);
    });
    this.write(".perfkit-readout", parts.join(" · "));
  }

  /* The turn that is nearest to a place of the upper plot. */
  nearest({ left, top }) {
    const { plot } = this.plots[0];
    const [times, ...rates] = this.plots[0].columns();
    let best;
    rates.forEach((column, place) => column.forEach((rate, row) => {
      if (rate === null) return;
      const across = plot.valToPos(times[row], "x") - left;
      const down = top === undefined ? 0 : plot.valToPos(rate, "y") - top;
      const far = across ** 2 + down ** 2;
      if (Math.abs(across) < NEAR && far < (best?.far ?? Infinity)) best = { far, place, rate };
    }));
    return best;
  }
}

/* A slider's thumb has no name of its own; without one a screen reader says "slider". */
const nameSliders = (panel) => {
  panel?.querySelectorAll(".widget-slider").forEach((slider) => {
    const name = slider.querySelector(".widget-label")?.textContent ?? "";
    slider.querySelector("[role=slider]")?.setAttribute("aria-label", name);
  });
};

/* Give a parent a child for each item, and touch it only where they differ. */
const fill = (parent, items, make) => {
  const key = JSON.stringify(items);
  if (parent.dataset.key === key) return;
  parent.dataset.key = key;
  parent.replaceChildren(...items.map(make));
};

// One of these for each model: all its views share the points.
export default () => {
  const points = new Points();
  const views = new Set();
  let doing = {};
  const show = () => views.forEach((view) => view.later());

  const keyframe = (model) => {
    const width = 1 + model.get("variants").length + model.get("load").length;
    points.keyframe(model.get("frame"), width, model.get("total"));
    points.estimates = [...model.get("estimates")];
    doing = model.get("doing");
    show();
  };

  const hear = (model, message, [rows]) => {
    points.append(rows, message.first, model.get("capacity"));
    points.estimates.push(...message.estimates);
    doing = message.doing;
    show();
  };

  return {
    initialize({ model }) {
      keyframe(model);
      model.on("change:frame change:estimates change:doing", () => keyframe(model));
      model.on("change:variants change:measure", () => views.forEach((view) => view.rebuild()));
      // A sentence is said wherever the reader is, and read out where it is spoken.
      model.on("change:state", () => views.forEach((view) => view.tell()));
      model.on("change:words change:guess change:span", show);
      model.on("msg:custom", (message, buffers) => hear(model, message, buffers));
    },
    render({ model, el }) {
      const view = new View(model, el, points, () => doing);
      views.add(view);
      return () => {
        views.delete(view);
        view.remove();
      };
    },
  };
};
