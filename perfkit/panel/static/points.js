/* The points of a run, as its kernel sends them: rows of 32-bit floats. */

const floatsOf = (view) =>
  view?.byteLength
    ? new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength))
    : new Float32Array(0);

class Points {
  constructor() {
    this.reset(1);
  }

  reset(width) {
    this.columns = Array.from({ length: width }, () => []);
    this.total = 0;
  }

  /* The whole window anew: `total` rows have been sent so far. */
  keyframe(view, width, total) {
    this.reset(width);
    this.push(floatsOf(view), 0);
    this.total = total;
  }

  /* Rows from number `first` on; rows that never came are in the next keyframe. */
  append(view, first, capacity) {
    const rows = floatsOf(view);
    const count = rows.length / this.columns.length;
    if (first > this.total || first + count <= this.total) return;
    this.push(rows, this.total - first);
    this.total = first + count;
    const over = this.columns[0].length - capacity;
    if (over > 0) this.columns.forEach((column) => column.splice(0, over));
  }

  push(rows, skip) {
    const width = this.columns.length;
    for (let at = skip * width; at < rows.length; at += width) {
      this.columns.forEach((column, i) => {
        const value = rows[at + i];
        column.push(Number.isNaN(value) ? null : value);
      });
    }
  }

  get end() {
    return this.columns[0].at(-1) ?? 0;
  }
}
