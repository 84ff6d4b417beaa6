/* What tells the variants apart over time: colour, dashes, and whether it is filled. */

// Each stands out from white and from JupyterLab's dark grey alike, at least 3 to 1.
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

/* The range that shows the rates of some columns; logarithmic where a plain one would
   hide some. */
const rangeOf = (columns) => {
  const values = columns.flatMap((column) => {
    const turns = column.filter((value) => value > 0).sort((a, b) => a - b);
    // A turn that something else disturbed is no reason to squeeze the others.
    const cut = Math.floor(turns.length / 8);
    return turns.length ? [turns[cut], turns.at(-1 - cut)] : [];
  });
  if (!values.length) return { low: 0, high: 1, wide: false };
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return high / low > 6
    ? { low: low / 1.4, high: high * 1.3, wide: true }
    : { low: 0, high: high * 1.1, wide: false };
};

/* 1, 2 and 5 of every power of ten. */
const logTicks = (low, high) => {
  const powers = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    powers.push(power, 2 * power, 5 * power);
  }
  return powers.filter((tick) => tick >= low && tick <= high);
};
