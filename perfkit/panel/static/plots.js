/* Two plots on one clock: the rates, and below them the machine's load. Their legends
   give the values under the cursor. */

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

/* One dot for each turn of a variant. */
const ratesPlot = (element, { points, variants, hidden, span, sync }) => {
  const shown = variants.map((label, place) => ({ label, place })).filter(({ label }) => !hidden.has(label));
  const rates = () => shown.map(({ place }) => points.columns[1 + place]);
  const { wide } = rangeOf(rates());
  const options = common(element, HEIGHTS.rates, span, points, sync);
  options.axes = axesOf(
    element,
    {
      values: (_, splits) => splits.map((split) => (split === null ? "" : number(split))),
      ...(wide && { splits: (_, __, low, high) => logTicks(low, high) }),
      ...(wide && { filter: (_, splits) => splits }),
    },
    false,
  );
  options.scales.y = {
    distr: wide ? 3 : 1,
    range: () => {
      const { low, high } = rangeOf(rates());
      // The plot is made anew before it is drawn if it no longer fits.
      return wide && low === 0 ? [high / 10, high] : [low, high];
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
  const columns = () => [points.columns[0], ...rates()];
  return made(options, element, columns, () => rangeOf(rates()).wide === wide);
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
