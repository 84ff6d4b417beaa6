/* What tells the variants apart: colour, mark and dashes, each with a cycle of its own
   length, so that what shares one differs in the others. */

// Each stands out from white and from JupyterLab's dark grey alike, at least 3 to 1.
const COLOURS = ["#0173b2", "#d55e00", "#029e73", "#cc78bc", "#808080", "#1f9bb5", "#a8791c"];
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];
const MARKS = [
  "M-3.5 0A3.5 3.5 0 1 0 3.5 0A3.5 3.5 0 1 0 -3.5 0Z",
  "M-3.2 -3.2H3.2V3.2H-3.2Z",
  "M0 -4.2L4 3.2H-4Z",
  "M0 -4.6L4.2 0L0 4.6L-4.2 0Z",
  "M0 4.2L4 -3.2H-4Z",
];

const lookOf = (place) => ({
  colour: COLOURS[place % COLOURS.length],
  dash: DASHES[place % DASHES.length],
  mark: MARKS[place % MARKS.length],
});

/* A piece of line as it is drawn, for the table that names it. */
const sampleOf = ({ colour, dash, mark }) =>
  `<svg width="36" height="12" viewBox="-18 -6 36 12" aria-hidden="true">
    <path d="M-17 0H17" stroke="${colour}" stroke-width="2" stroke-dasharray="${dash}"/>
    ${mark ? `<path d="${mark}" fill="${colour}"/>` : ""}</svg>`;

const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const number = (value) => digits.format(value);
const percent = (value) => `${Math.round(100 * value)} %`;

/* Whether an interval says more than that hardly anything is known. */
const isKnown = ({ rate, low, high }) => low > 0 && high <= 2 * rate;

/* A rate with its interval, or as much of it as is known. */
const rateText = (estimate, turn) => {
  if (!estimate) return turn === undefined ? "" : `${number(turn)} (no interval yet)`;
  const { rate, low, high } = estimate;
  return isKnown(estimate)
    ? `${number(rate)} (${number(low)} to ${number(high)})`
    : `${number(rate)} (hardly known)`;
};

/* The range that shows every rate, and a guess unless it is far off; logarithmic where
   a plain one would hide some. */
const rangeOf = (points, variants, guessed) => {
  const seen = variants.flatMap((_, i) => {
    const turns = points.columns[1 + i].filter((value) => value > 0).sort((a, b) => a - b);
    // A turn that something else disturbed is no reason to squeeze the others.
    const cut = Math.floor(turns.length / 8);
    return [turns[cut], turns.at(-1 - cut), points.estimatesOf(i).at(-1)?.rate];
  });
  const values = seen.filter((value) => value > 0);
  if (!values.length) return { low: 0, high: 1, wide: false };
  const most = Math.max(...values);
  const low = Math.min(...values);
  const high = Math.max(most, Math.min(guessed ?? 0, 3 * most));
  return high / low > 6
    ? { low: low / 1.4, high: high * 1.3, wide: true }
    : { low: 0, high: high * 1.1, wide: false };
};

/* The rate that a guessed ratio stands for, once the baseline's is known. */
const guessedRate = (points, baseline, guess) => {
  const base = points.estimatesOf(baseline).at(-1);
  return guess.ratio && base ? base.rate * guess.ratio : undefined;
};

/* 1, 2 and 5 of every power of ten. */
const logTicks = (low, high) => {
  const powers = [];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    powers.push(power, 2 * power, 5 * power);
  }
  return powers.filter((tick) => tick >= low && tick <= high);
};
