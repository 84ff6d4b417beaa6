/* Two plots on one clock: the rates, and below them the machine's load. Their legends
   give the values under the cursor. */

// What tells the variants apart, besides whether their dots are filled. Each stands out
// from white and from JupyterLab's dark grey alike, at least 3 to 1.
const COLOURS = ["#0173b2", "#d55e00", "#029e73", "#cc78bc", "#808080", "#1f9bb5", "#a8791c"];
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

const lookOf = (place) => ({
  colour: COLOURS[place % COLOURS.length],
  dash: DASHES[place % DASHES.length],
  filled: place % (2 * COLOURS.length) < COLOURS.length,
});

const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const number = (value) => digits.format(value);
const percent = (value) => `${Math.round(100 * value)} %`;

const HEIGHTS = { rates: 230, load: 110 };
// As wide as "10,000,000".
const LEFT = 80;

const axesOf = (element, values, xLabel) => {
  const { color: stroke, fontFamily } = getComputedStyle(element);
  const grid = { stroke: "#8884", width: 1 };
  const font = `12px ${fontFamily}`;
  const common = { stroke, grid, font, labelFont: font, ticks: { ...grid, size: 4 } };
  // Only the lower plot names the seconds; both have a line for each.
  const seconds = (_, splits) => splits.map((split) => (xLabel ? `${split} s` : ""));
  return [
    { ...common, size: xLabel ? 30 : 8, values: seconds },
    { ...common, size: LEFT, ...values },
  ];
};

const common = (element, height, span, points, sync) => ({
  width: Math.max(element.clientWidth, 80),
  height,
  padding: [8, 12, 2, 0],
  cursor: {
    drag: { setScale: false, x: false, y: false },
    points: { show: false },
    sync: { key: sync },
    y: false,
  },
  scales: { x: { time: false, range: () => [0, 1.02 * Math.max(span(), points.end, 1)] } },
});

const clock = { label: "at", value: (_, at) => (at === null ? "" : `${at.toFixed(1)} s`) };

/* A plot that can give its data anew, and says whether its axes still fit them. */
const made = (options, element, columns, fits) =>
  Object.assign(new uPlot(options, columns(), element), { columns, fits });

/* One dot for each turn of a variant, on the axis that the chart has. */
const ratesPlot = (element, { points, variants, hidden, span, picture, sync }) => {
  const shown = variants.map((label, place) => ({ label, place })).filter(({ label }) => !hidden.has(label));
  const log = picture().axis[2];
  const options = common(element, HEIGHTS.rates, span, points, sync);
  const texts = () => picture().ticks.map(([, text]) => text);
  const splits = () => picture().ticks.map((tick) => tick[2]);
  options.axes = axesOf(element, { values: texts, splits, filter: splits }, false);
  options.scales.y = {
    distr: log ? 3 : 1,
    range: () => {
      // A turn may lie beyond the rates of all.
      const [low, high] = picture().axis;
      return [low / 1.3, high * 1.3];
    },
  };
  options.series = [
    clock,
    ...shown.map(({ label, place }) => {
      const { colour, filled } = lookOf(place);
      const points = { show: true, size: 5, stroke: colour, fill: filled ? colour : "transparent" };
      const value = (_, rate) => (rate === null ? "" : number(rate));
      return { label, stroke: colour, paths: () => null, points, value };
    }),
  ];
  const columns = () => [points.columns[0], ...shown.map(({ place }) => points.columns[1 + place])];
  return made(options, element, columns, () => picture().axis[2] === log);
};

/* The share of the machine that is busy, and its speed. */
const loadPlot = (element, { points, variants, load, span, sync }) => {
  const options = common(element, HEIGHTS.load, span, points, sync);
  const share = { values: (_, splits) => splits.map(percent), splits: () => [0, 0.5, 1] };
  options.axes = axesOf(element, share, true);
  options.scales.y = { range: () => [0, 1.02] };
  options.series = [
    clock,
    ...load.map((label, place) => {
      const { colour, dash } = lookOf(place);
      const value = (_, busy) => (busy === null ? "" : percent(busy));
      return { label, stroke: colour, dash, width: 1.5, spanGaps: true, points: { show: false }, value };
    }),
  ];
  const first = 1 + variants.length;
  const columns = () => [points.columns[0], ...load.map((_, i) => points.columns[first + i])];
  return made(options, element, columns, () => true);
};
