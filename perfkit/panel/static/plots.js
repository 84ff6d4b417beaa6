/* Two plots on one clock: the rates, and below them the machine's load. */

const HEIGHTS = { rates: 230, load: 110 };
// As wide as "10,000,000".
const LEFT = 80;

const inkOf = (element) => {
  const css = getComputedStyle(element);
  return (name, otherwise) => css.getPropertyValue(name).trim() || otherwise;
};

const axesOf = (element, values, xLabel) => {
  const ink = inkOf(element);
  const stroke = ink("--jp-ui-font-color1", "#333");
  const grid = { stroke: ink("--jp-border-color2", "#8884"), width: 1 };
  const font = `12px ${ink("--jp-ui-font-family", "system-ui")}`;
  const common = { stroke, grid, font, labelFont: font, ticks: { ...grid, size: 4 } };
  // Only the lower plot names the seconds; both have a line for each.
  const seconds = (_, splits) => splits.map((split) => (xLabel ? `${split} s` : ""));
  return [
    { ...common, size: xLabel ? 30 : 8, values: seconds },
    { ...common, size: LEFT, ...values },
  ];
};

const common = (element, height, sync, move) => ({
  width: Math.max(element.clientWidth, 80),
  height,
  legend: { show: false },
  padding: [8, 12, 2, 0],
  cursor: {
    drag: { setScale: false, x: false, y: false },
    points: { show: false },
    sync: { key: sync },
    y: false,
  },
  hooks: { setCursor: [(plot) => move(plot)] },
});

/* One dot a turn, and at the end of every round the rate with its interval. */
const ratesPlot = (element, { points, variants, baseline, guess, span, sync, move }) => {
  const guessed = () => guessedRate(points, variants.indexOf(baseline), guess());
  const ranged = () => rangeOf(points, variants, guessed());
  const { wide } = ranged();
  const options = common(element, HEIGHTS.rates, sync, move);
  options.axes = axesOf(
    element,
    {
      values: (_, splits) => splits.map((split) => (split === null ? "" : number(split))),
      ...(wide && { splits: (_, __, low, high) => logTicks(low, high) }),
      ...(wide && { filter: (_, splits) => splits }),
    },
    false,
  );
  options.scales = {
    x: { time: false, range: () => [0, 1.02 * Math.max(span(), points.end, 1)] },
    y: {
      distr: wide ? 3 : 1,
      range: () => {
        const { low, high } = ranged();
        // The plot is made anew before it is drawn if it no longer fits.
        return wide && low === 0 ? [high / 10, high] : [low, high];
      },
    },
  };
  options.series = [
    {},
    ...variants.map((label) => ({ label, paths: () => null, points: { show: false } })),
  ];
  options.hooks.draw = [
    (plot) => within(plot, (context) => {
      variants.forEach((_, place) => drawTurns(plot, context, points, place));
      variants.forEach((_, place) => drawEstimates(plot, context, points, place, variants.length));
      drawGuess(plot, context, guessed());
    }),
  ];
  const columns = () => [points.columns[0], ...variants.map((_, i) => points.columns[1 + i])];
  const plot = new uPlot(options, columns(), element);
  return { plot, columns, wide, fits: () => ranged().wide === wide };
};

/* The share of the machine that is busy, and its speed. */
const loadPlot = (element, { points, variants, load, span, sync, move }) => {
  const options = common(element, HEIGHTS.load, sync, move);
  const share = { values: (_, splits) => splits.map(percent), splits: () => [0, 0.5, 1] };
  options.axes = axesOf(element, share, true);
  options.scales = {
    x: { time: false, range: () => [0, 1.02 * Math.max(span(), points.end, 1)] },
    y: { range: () => [0, 1.02] },
  };
  options.series = [
    {},
    ...load.map((label, place) => {
      const { colour, dash } = lookOf(place);
      const spanGaps = true;
      return { label, stroke: colour, dash, width: 1.5, spanGaps, points: { show: false } };
    }),
  ];
  const first = 1 + variants.length;
  const columns = () => [points.columns[0], ...load.map((_, i) => points.columns[first + i])];
  return { plot: new uPlot(options, columns(), element), columns, fits: () => true };
};

const within = (plot, draw) => {
  const { ctx: context, bbox } = plot;
  context.save();
  context.beginPath();
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  context.clip();
  draw(context);
  context.restore();
};

const drawMark = (context, mark, x, y, size) => {
  context.save();
  context.translate(x, y);
  context.scale(size, size);
  context.fill(new Path2D(mark));
  context.restore();
};

const drawTurns = (plot, context, points, place) => {
  const { colour, mark } = lookOf(place);
  context.fillStyle = colour;
  context.globalAlpha = 0.75;
  points.columns[1 + place].forEach((rate, row) => {
    if (rate === null) return;
    const x = plot.valToPos(points.columns[0][row], "x", true);
    drawMark(context, mark, x, plot.valToPos(rate, "y", true), 0.7 * devicePixelRatio);
  });
  context.globalAlpha = 1;
};

const drawEstimates = (plot, context, points, place, count) => {
  const known = points.estimatesOf(place);
  if (!known.length) return;
  const { colour, dash, mark } = lookOf(place);
  const unit = devicePixelRatio;
  // Side by side, so that whiskers do not hide each other.
  const aside = (place - (count - 1) / 2) * 5 * unit;
  const x = (at) => plot.valToPos(at, "x", true) + aside;
  const y = (rate) => plot.valToPos(Math.max(rate, plot.scales.y.min), "y", true);
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 2 * unit;
  context.beginPath();
  context.setLineDash(dash.map((length) => length * unit));
  known.forEach(({ at, rate }, i) => context[i ? "lineTo" : "moveTo"](x(at), y(rate)));
  context.lineTo(plot.valToPos(points.end, "x", true), y(known.at(-1).rate));
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1.5 * unit;
  known.forEach(({ at, rate, low, high }) => {
    context.globalAlpha = isKnown({ rate, low, high }) ? 1 : 0.3;
    context.beginPath();
    context.moveTo(x(at), y(low));
    context.lineTo(x(at), y(high));
    for (const end of [low, high]) {
      context.moveTo(x(at) - 3 * unit, y(end));
      context.lineTo(x(at) + 3 * unit, y(end));
    }
    context.stroke();
    context.globalAlpha = 1;
    drawMark(context, mark, x(at), y(rate), unit);
  });
};

/* A guessed ratio is a line through what it says the rate will be. */
const drawGuess = (plot, context, guessed) => {
  if (guessed === undefined) return;
  const unit = devicePixelRatio;
  const y = plot.valToPos(guessed, "y", true);
  const { left, width } = plot.bbox;
  context.strokeStyle = context.fillStyle = plot.axes[0].stroke();
  context.lineWidth = 1.5 * unit;
  context.setLineDash([2 * unit, 4 * unit]);
  context.beginPath();
  context.moveTo(left, y);
  context.lineTo(left + width, y);
  context.stroke();
  context.setLineDash([]);
  context.font = `${12 * unit}px system-ui`;
  context.textAlign = "left";
  context.fillText("your guess", left + 6 * unit, y - 5 * unit);
};
