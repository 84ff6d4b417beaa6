/* The widget: what a run does, and its chart filling in. */

const FRAME = `
  <div class="perfkit-now">
    <p class="perfkit-state" role="status"></p>
    <p class="perfkit-doing" hidden>
      <progress max="1" aria-label="Share of the run that is done"></progress>
      <b class="perfkit-left"></b><span class="perfkit-said"></span>
    </p>
  </div>
  <div class="perfkit-drawn" hidden>
    <p class="perfkit-lead"><span></span> <span class="perfkit-sure"></span></p>
    <div class="perfkit-picture" role="group">
      <div class="perfkit-behind" aria-hidden="true"></div>
      <div class="perfkit-rows"></div>
      <div class="perfkit-below"></div>
    </div>
    <p class="perfkit-readout"></p>
  </div>`;
const HINT =
  "◆ fastest · ■ baseline · bar: 95 % interval · " +
  "hollow: not known yet · dashed: a limit · dotted: your guess";

class View {
  constructor(model, el) {
    Object.assign(this, { model, el });
    el.classList.add("perfkit-live");
    el.innerHTML = FRAME;
    this.part = (name) => el.querySelector(name);
    this.rows = new Map();
    this.dirty = false;
    this.visible = false;
    // Scrolled away, it draws nothing; the first call comes once it is on the page.
    this.observer = new IntersectionObserver((seen) => {
      this.visible = seen.at(-1).isIntersecting;
      nameSliders(el.closest(".perfkit-panel"));
      if (this.visible && this.dirty) this.later();
    });
    this.observer.observe(el);
    const read = ({ type, target }) => {
      const at = type.endsWith("out") ? null : target.closest(".perfkit-row");
      this.write(".perfkit-readout", at?.dataset.said ?? HINT);
    };
    for (const type of ["pointerover", "pointerout", "focusin", "focusout"]) {
      this.part(".perfkit-rows").addEventListener(type, read);
    }
    this.write(".perfkit-readout", HINT);
    this.tell();
    this.later();
  }

  remove() { this.observer.disconnect(); }

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
    const picture = this.model.get("picture");
    this.el.dataset.rows = picture.total ?? 0;
    this.part(".perfkit-drawn").hidden = !picture.rows?.length;
    if (!picture.rows?.length) return;
    this.write(".perfkit-lead span", picture.said);
    this.write(".perfkit-sure", picture.sure);
    this.part(".perfkit-sure").dataset.sure = picture.sure.split(":")[0];
    this.fill(picture);
  }

  tell() {
    const { said = "", left = "", share } = this.model.get("doing");
    this.write(".perfkit-state", this.model.get("state"));
    this.part(".perfkit-doing").hidden = share === undefined;
    this.el.classList.toggle("perfkit-running", share !== undefined);
    this.part("progress").value = share ?? 0;
    this.write(".perfkit-left", left);
    this.write(".perfkit-said", said);
    this.part(".perfkit-picture").setAttribute("aria-label", this.model.get("words"));
  }

  /* A part that says the same is left alone: screen readers read every change. */
  write(name, text) {
    if (this.part(name).textContent !== text) this.part(name).textContent = text;
  }

  /* The rows, each moved to where it stands now, and what lies behind and below. */
  fill({ rows, bands, ticks, unit, strip, others }) {
    const last = rows.length;
    const drawn = rows.map((row, place) => {
      if (!this.rows.has(row.name)) this.rows.set(row.name, rowOf());
      const made = this.rows.get(row.name);
      show(made, row, place + 1);
      return made;
    });
    const list = this.part(".perfkit-rows");
    // What is moved loses its focus, and the way that its dot has come.
    if (drawn.length !== list.children.length || drawn.some((one, i) => list.children[i] !== one)) {
      const focused = list.contains(document.activeElement) && document.activeElement;
      list.replaceChildren(...drawn);
      if (focused) focused.focus();
    }
    this.part(".perfkit-behind").replaceChildren(
      ...ticks.map(([at]) => cell("perfkit-band", `1 / 2 / ${last + 1}`, { kind: "tick" }, at, at)),
      ...bands.map(([kind, from, to, ...ends]) =>
        cell("perfkit-band", `${from + 1} / 2 / ${to + 2}`, { kind }, ...ends)),
    );
    const axis = cell("perfkit-axis", `${last + 1} / 2`);
    axis.append(...ticks.map(([at, text]) => cell("perfkit-tick", "", { text }, at, at)));
    const below = [axis, cell("perfkit-unit", `${last + 2} / 2`, { text: unit })];
    if (strip.length) {
      const area = cell("perfkit-strip", `${last + 3} / 2`);
      area.innerHTML = stripOf(strip);
      below.push(
        cell("perfkit-machine", `${last + 3} / 1`, { text: "the machine" }), area,
        cell("perfkit-others", `${last + 4} / 2 / ${last + 5} / 4`, { text: others }),
      );
    }
    this.part(".perfkit-below").replaceChildren(...below);
  }
}

/* A piece of the chart; what lies along the axis goes from and to percent of it. */
const cell = (name, area, { text = "", kind = "" } = {}, low, high) => {
  const made = document.createElement("div");
  made.className = name;
  made.textContent = text;
  made.dataset.kind = kind;
  made.style.gridArea = area;
  if (low !== undefined) Object.assign(made.style, { left: `${low}%`, width: `${high - low}%` });
  return made;
};

/* An empty row: its name, a place for its bar and dot, its numbers. */
const rowOf = () => {
  const made = document.createElement("div");
  made.className = "perfkit-row";
  made.innerHTML = `
    <span class="perfkit-name" tabindex="0"></span>
    <div class="perfkit-track"><span class="perfkit-problem"></span>
      <span class="perfkit-bar"></span><span class="perfkit-dot"></span></div>
    <div class="perfkit-label"><b></b><small></small></div>`;
  return made;
};

const show = (made, { name, mark, at, ends, known, words, said }, place) => {
  const [rate, ratio, more] = words;
  const text = (part, what) => { made.querySelector(part).textContent = what; };
  Object.assign(made.dataset, { mark, said, hollow: !known, drawn: at !== null });
  made.style.setProperty("--place", place);
  made.style.setProperty("--at", `${at ?? 0}%`);
  made.style.setProperty("--from", `${ends?.[0] ?? at ?? 0}%`);
  made.style.setProperty("--to", `${ends?.[1] ?? at ?? 0}%`);
  text(".perfkit-name", name);
  text("b", [rate, ratio].filter(Boolean).join(" · "));
  text("small", at === null ? "" : more);
  text(".perfkit-problem", at === null ? more : "");
};

/* The share of the machine that the run has, and on top of it what others take. */
const stripOf = (strip) => {
  const area = (upper, lower, name) => {
    const side = (height) => (row) => `${row[0]} ${1 - height(row)}`;
    const path = [...strip.map(side(upper)), ...strip.toReversed().map(side(lower))];
    return `<path class="${name}" d="M${path.join("L")}Z"/>`;
  };
  const mine = (row) => row[1], both = (row) => row[2];
  return `<svg viewBox="0 0 1 1" preserveAspectRatio="none" aria-hidden="true">
    ${area(mine, () => 0, "perfkit-mine")}
    ${area(both, mine, "perfkit-theirs")}</svg>`;
};

/* A slider's thumb has no name of its own; without one a screen reader says "slider". */
const nameSliders = (panel) => {
  panel?.querySelectorAll(".widget-slider").forEach((slider) => {
    const name = slider.querySelector(".widget-label")?.textContent ?? "";
    slider.querySelector("[role=slider]")?.setAttribute("aria-label", name);
  });
};

// One of these for each model.
export default () => {
  const views = new Set();
  return {
    initialize({ model }) {
      // A sentence is said wherever the reader is, and read out where it is spoken.
      model.on("change:state", () => views.forEach((view) => view.tell()));
      model.on("change:doing change:words change:picture", () =>
        views.forEach((view) => view.later()));
    },
    render({ model, el }) {
      const view = new View(model, el);
      views.add(view);
      return () => {
        views.delete(view);
        view.remove();
      };
    },
  };
};
