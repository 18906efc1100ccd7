// Lines, points, bands and bars on two axes; the slider picks which step's curves are shown.

import { Scale, category } from './colour.js';
import { dial, slider } from './controls.js';
import { clamp, el, largest, number, shorten, svg } from './dom.js';

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || !Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return low > high ? [0, 1] : [low, high];
}

// Of whole numbers (an epoch, a count) nothing between two is marked. A single mark would be no scale: then the step is smaller.
function linear_ticks(low, high, wanted, whole) {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough)), rounds = [1, 2, 5, 10];
  for (let at = rounds.findIndex((k) => k * power >= rough); ; --at) {
    const step = whole ? Math.max(1, rounds[at] * power) : rounds[at] * power, ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) ticks.push(i * step);
    if (ticks.length > 1 || at === 0 || (whole && step === 1)) return ticks;
  }
}

function log_ticks(low, high) {
  const ticks = [];
  const decades = Math.log10(high / low);
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e) {
    for (const k of decades > 2.5 ? [1] : decades > 1 ? [1, 3] : [1, 2, 5]) {
      const tick = k * 10 ** e;
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick);
    }
  }
  return ticks;
}

function axis(values, log, from, to, wanted, pad, whole = values.every(Number.isInteger)) {
  let [low, high] = extent(log ? values.filter((v) => v > 0) : values);
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - 0.5, high + 0.5];
  const forward = log ? Math.log : (v) => v;
  const margin = (forward(high) - forward(low)) * pad;
  let start = forward(low) - margin;
  const end = forward(high) + margin;
  if (!log && low >= 0 && start < 0) start = 0;
  const place = (v) => from + (forward(v) - start) / (end - start) * (to - from);
  place.start = from;
  place.end = to;
  const invert = (p) => { const v = start + (p - from) / (to - from) * (end - start); return log ? Math.exp(v) : v; };
  const back = log ? Math.exp : (v) => v;
  return { place, invert, ticks: log ? log_ticks(back(start), back(end)) : linear_ticks(start, end, wanted, whole) };
}

function tick_text(value) {
  if (value === 0 || Math.abs(value) < 1e-12) return '0';
  const size = Math.abs(value);
  if (size < 1e5 && size >= 1e-3) return String(Number(value.toPrecision(6))).replace('-', '−');
  const [factor, power] = value.toExponential(0).split('e');
  const ten = '10' + [...String(Number(power))].map((digit) => (digit === '-' ? '⁻' : '⁰¹²³⁴⁵⁶⁷⁸⁹'[digit])).join('');
  return factor === '1' ? ten : `${factor.replace('-', '−')}·${ten}`;
}

// The size at which a label on an axis is no longer than the room it has.
function fitting(label, room) {
  return clamp(room / (0.53 * [...label].length), 8, 13);
}

const ruler = document.createElement('canvas').getContext('2d');  // how long a text will be

// Where the name of a point may stand, from the point: beside it, then on rings around it.
const PLACES_OF_NAMES = [{ dx: 0, dy: 0, end: false }, { dx: 0, dy: 0, end: true },
  ...[16, 30, 44, 58, 72, 86].flatMap((radius) => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((turn) => {
    const angle = Math.PI * (turn + 0.5) / 5;
    return { dx: radius * Math.cos(angle), dy: radius * Math.sin(angle), end: Math.cos(angle) < 0 };
  }))];

const MOST_AVOIDED = 1000;  // points that names keep clear of
const SMALLEST_LABEL = 11;  // px: a label of the y axis that would be smaller stands above the plot

const COLOURED_KINDS = ['line', 'points', 'band', 'bars'];

export class PlotFigure {
  // `links.look(x)` is told where the reader looks, `links.step(i)` where the slider stands.
  constructor(plot, links = {}) {
    this.plot = plot;
    this.links = links;
    this.step = plot.slider ? plot.slider.chosen ?? 0 : -1;  // a first step that is chosen is left out of the file
    this.hidden = new Set();
    // One colour for each label, so that a curve keeps it along the slider.
    this.labels = [...new Set(plot.curves.filter((c) => COLOURED_KINDS.includes(c.kind)).map((c) => c.label || ''))];
    this.host = el('div', { class: plot.slider || this.contours.length > 3 ? 'plot played' : 'plot' });  // a slider, a map
    this.readout = el('p', { class: 'readout', 'aria-live': 'polite' });
    this.area = el('div', { class: 'plot-area' });
    const names = plot.slider?.values.map(plot.slider.values.every(Number.isInteger) ? String : number);
    this.host.append(
      plot.title ? el('h5', {}, plot.title) : '',
      this.slider = names ? slider(plot.slider.label, names, this.step, (i) => { this.step = i; this.draw(); links.step?.(i); }) : '',
      this.legend(), this.area, this.readout);
  }
  show_step(i) {
    if (this.plot.slider.values[i] === undefined || i === this.step) return;
    this.slider.set(i);
    this.step = i;
    this.draw();
  }
  // Contours are lines labelled `name = number`, lowest first: their colours are steps of one ramp.
  get contours() {
    return this.family ??= this.labels.filter((label) => / = [−-]?[\d.e+−-]+$/.test(label));
  }
  colour(label) {
    const step = this.contours.indexOf(label);
    if (step >= 0 && this.contours.length > 3) return new Scale(1).css(0.25 + 0.75 * step / (this.contours.length - 1));
    return category(this.labels.indexOf(label || ''));
  }
  legend() {
    if (this.labels.length < 2) return '';
    this.keys = el('div', { class: 'plot-keys' });
    return this.keys;
  }
  draw_legend() {
    if (!this.keys) return;
    const now = new Set(this.at_step().map((c) => c.label));
    const family = this.contours.length > 3 ? this.contours : [];  // their numbers stand on them: one key for all
    this.keys.replaceChildren(...this.labels.filter((label) => label && now.has(label) && (!family.includes(label) || label === family[0])).map((label) => {
      const members = label === family[0] ? family : [label];
      const kind = this.plot.curves.find((c) => c.label === label).kind;
      return el('label', { class: 'plot-key' },
        el('input', { type: 'checkbox', checked: !this.hidden.has(label), onchange: (event) => {
          for (const member of members) {
            if (event.target.checked) this.hidden.delete(member); else this.hidden.add(member);
          }
          this.draw();
        } }),
        el('i', { class: `swatch ${kind}`, style: { background: kind === 'points' ? 'none' : this.colour(label),
          borderColor: this.colour(label) } }), members.length > 1 ? `${label} to ${family.at(-1).split(' = ').at(-1)}` : label);
    }));
  }
  at_step() {
    return this.plot.curves.filter((c) => (c.step ?? -1) === -1 || c.step === this.step);
  }
  shown() {
    return this.at_step().filter((c) => !this.hidden.has(c.label || ''));
  }
  draw() {
    this.draw_legend();
    const { plot } = this;
    const width = Math.max(260, this.area.clientWidth || 640), height = Math.round(clamp(width * 0.5, 220, 340));
    const above = fitting(plot.y_label, height - 60) < SMALLEST_LABEL;
    const right = 14, top = above ? 32 : 14, bottom = 46;
    // The axes span every step, so that the slider moves the curve and not the scale.
    const ys = plot.curves.flatMap((c) => c.kind === 'band' ? [...c.y, ...c.upper] : c.kind === 'bars' ? [...c.y, 0] : c.y);
    const xs = [...plot.curves.flatMap((c) => c.x), ...(plot.markers || []).map((m) => m.x)];
    const bars = plot.curves.filter((c) => c.kind === 'bars');
    const bar_step = bars.length && bars[0].x.length > 1 ? Math.min(...bars[0].x.slice(1).map((x, i) => x - bars[0].x[i])) : 1;
    const whole = xs.every(Number.isInteger);
    if (bars.length) xs.push(Math.min(...bars[0].x) - bar_step / 2, Math.max(...bars[0].x) + bar_step / 2);
    this.y = axis(ys, plot.log_y, height - bottom, top, 5, 0.06);
    const left = 34 + 7.2 * largest(this.y.ticks.map((tick) => tick_text(tick).length));
    this.x = axis(xs, plot.log_x, left, width - right, clamp(width / 90, 3, 8), bars.length ? 0 : 0.02, whole);
    const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-label': `${plot.title || 'Plot'}: ${plot.y_label} against ${plot.x_label}` });
    // Bars that have names stand on them in place of numbers.
    const named = this.shown().find((c) => c.kind === 'bars' && c.names);
    if (named) {
      const room = (width - left - right) / named.x.length;
      named.x.forEach((x, i) => root.append(svg('text', { class: 'tick', x: this.x.place(x), y: height - bottom + 18 + (room < 60 && i % 2 ? 13 : 0), 'text-anchor': 'middle' },
        shorten(named.names[i], Math.max(4, Math.floor((room < 60 ? 2 : 1) * room / 7))), svg('title', {}, named.names[i]))));
    }
    for (const tick of named ? [] : this.x.ticks) {
      root.append(svg('line', { class: 'grid', x1: this.x.place(tick), x2: this.x.place(tick), y1: top, y2: height - bottom }),
        svg('text', { class: 'tick', x: this.x.place(tick), y: height - bottom + 18, 'text-anchor': 'middle' }, tick_text(tick)));
    }
    for (const tick of this.y.ticks) {
      root.append(svg('line', { class: 'grid', x1: left, x2: width - right, y1: this.y.place(tick), y2: this.y.place(tick) }),
        svg('text', { class: 'tick', x: left - 8, y: this.y.place(tick) + 4, 'text-anchor': 'end' }, tick_text(tick)));
    }
    root.append(
      svg('text', { class: 'axis-label', x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle',
        style: { fontSize: `${fitting(plot.x_label, width - right - left + 2 * right)}px` } }, plot.x_label),
      above ? svg('text', { class: 'axis-label', x: 2, y: 13, style: { fontSize: `${fitting(plot.y_label, width - 4)}px` } }, plot.y_label)
        : svg('text', { class: 'axis-label', transform: `translate(13 ${(top + height - bottom) / 2}) rotate(-90)`, 'text-anchor': 'middle',
          style: { fontSize: `${fitting(plot.y_label, height - top - bottom)}px` } }, plot.y_label));
    const bar_labels = this.at_step().filter((c) => c.kind === 'bars').map((c) => c.label || '');  // they share a place
    this.named = [];  // where names of points lie already
    const scattered = this.shown().filter((c) => c.kind === 'points'), few = scattered.reduce((sum, c) => sum + c.x.length, 0) <= MOST_AVOIDED;
    this.dots = scattered.filter((c) => few || c.names).flatMap((c) => c.x.map((x, i) => [this.x.place(x), this.y.place(c.y[i])]));
    ruler.font = `12px ${getComputedStyle(this.area).fontFamily}`;
    for (const curve of this.shown()) root.append(this.shape(curve, bar_step, bar_labels));
    const labels = [];  // a label that would lie on another goes one line further down
    for (const marker of plot.markers || []) {
      if ((marker.step ?? -1) !== -1 && marker.step !== this.step) continue;
      const at = this.x.place(marker.x), wide = 12 + 8 * marker.label.length, end = at + wide > width && at > width / 2;
      const from = end ? at - wide : at, to = from + wide;
      let line = 0;
      while (labels.some((label) => label.line === line && label.from < to && from < label.to)) line++;
      labels.push({ from, to, line });
      root.append(svg('line', { class: 'marker', x1: at, x2: at, y1: top, y2: height - bottom }),
        svg('text', { class: 'marker-label', x: at + (end ? -6 : 6), y: top + 12 + 16 * line, 'text-anchor': end ? 'end' : 'start' },
          marker.label));
    }
    this.cross = svg('line', { class: 'cross', y1: top, y2: height - bottom, visibility: 'hidden' });
    root.append(this.cross);
    root.addEventListener('pointermove', (event) => this.look(this.x.invert(event.clientX - root.getBoundingClientRect().left)));
    root.addEventListener('pointerleave', () => this.cross.setAttribute('visibility', 'hidden'));
    this.area.replaceChildren(root);
    if (!this.reader) {
      // The same look for a keyboard: a slider along x.
      const [low, high] = extent(xs);
      this.reader = dial(`read at ${plot.x_label}`, { minimum: 0, maximum: 200, step: 1, value: 100,
        format: (i) => number(this.at(i, low, high)) }, (i) => this.look(this.at(i, low, high)));
      this.reader.dataset.export = 'no';
      this.reader.classList.add('reader');
      this.host.append(this.reader);
    }
  }
  at(i, low, high) {
    if (!this.plot.log_x || low <= 0) return low + (high - low) * i / 200;
    return low * (high / low) ** (i / 200);
  }
  shape(curve, bar_step, bar_labels) {
    const colour = this.colour(curve.label);
    const X = this.x.place, Y = this.y.place;
    const points = curve.x.map((x, i) => [x, curve.y[i], i]).filter(([x, y]) => y !== null && (!this.plot.log_x || x > 0) && (!this.plot.log_y || y > 0));
    if (curve.kind === 'points') {
      return svg('g', { class: 'points' },
        points.map(([x, y, i]) => svg('circle', { cx: X(x), cy: Y(y), r: points.length > 400 ? 1.6 : 3.2, fill: colour },
          curve.names ? svg('title', {}, `${curve.names[i]}: ${number(x)}, ${number(y)}`) : null)),
        curve.names ? points.map(([x, y, i]) => this.point_name(X(x), Y(y), curve.names[i])) : null);
    }
    if (curve.kind === 'bars') {
      const index = bar_labels.indexOf(curve.label || ''), n = bar_labels.length;
      const full = Math.abs(X(curve.x[0] + bar_step) - X(curve.x[0])) * 0.86, wide = full / n;
      return svg('g', {}, points.map(([x, y]) => svg('rect', { x: X(x) - full / 2 + index * wide, width: Math.max(1, wide - 1),
        y: Math.min(Y(y), Y(0)), height: Math.abs(Y(y) - Y(0)), fill: colour })));
    }
    if (curve.kind === 'band') {
      const up = points.map(([x, , i]) => `${X(x)},${Y(curve.upper[i])}`), down = points.map(([x, y]) => `${X(x)},${Y(y)}`).reverse();
      return svg('path', { class: 'band', d: `M${[...up, ...down].join('L')}Z`, fill: colour });
    }
    const pieces = [[]];
    curve.x.forEach((x, i) => {
      const y = curve.y[i];
      if (y === null || (this.plot.log_y && y <= 0) || (this.plot.log_x && x <= 0)) pieces.push([]);
      else pieces.at(-1).push([X(x).toFixed(2), Y(y).toFixed(2)]);
    });
    const path = pieces.filter((piece) => piece.length > 1).map((piece) => `M${piece.join('L')}`).join('');
    // A point without neighbours is no line: a dot, or it would not be seen.
    const dots = pieces.filter((piece) => piece.length === 1).map(([[cx, cy]]) => svg('circle', { class: 'dot', cx, cy, r: 3.6, fill: colour }));
    const line = svg('path', { class: 'line', d: path, stroke: colour });
    if (this.contours.length > 3 && this.contours.includes(curve.label)) return svg('g', {}, line, this.contour_name(curve, pieces));
    return dots.length ? svg('g', {}, line, dots) : line;
  }
  // The number of a contour, in the middle of its longest piece.
  contour_name(curve, pieces) {
    const longest = pieces.reduce((best, piece) => (piece.length > best.length ? piece : best), []);
    if (longest.length < 2) return null;
    const [x, y] = longest[longest.length >> 1];
    return svg('text', { class: 'point-name', x, y: Number(y) + 4, 'text-anchor': 'middle' }, curve.label.split(' = ').at(-1));
  }
  // To the right of its point, or to the left where the plot ends or something is there; else in the nearest free place around it,
  // with a line to the point; nowhere where all are taken. Names come most important first, and the title of a point says its name
  // in any case.
  point_name(x, y, name) {
    const wide = 9 + ruler.measureText(name).width;
    for (const { dx, dy, end } of PLACES_OF_NAMES) {
      const at = x + dx, height = y + dy;
      const box = { from: end ? at - wide : at + 3, to: end ? at - 3 : at + wide, y: height };
      if (box.from < this.x.place.start || box.to > this.x.place.end || height < this.y.place.end + 6 || height > this.y.place.start - 6) continue;
      if (this.named.some((other) => Math.abs(other.y - height) < 13 && other.from < box.to && box.from < other.to)) continue;
      if (this.dots.some(([dot, level]) => Math.abs(level - height) < 7 && box.from < dot && dot < box.to)) continue;
      this.named.push(box);
      const text = svg('text', { class: 'point-name', x: at + (end ? -6 : 6), y: height + 4, 'text-anchor': end ? 'end' : 'start' }, name);
      return dx || dy ? svg('g', {}, svg('line', { class: 'name-line', x1: x, y1: y, x2: at + (end ? -4 : 4), y2: height }), text) : text;
    }
    return null;
  }
  // The value of every curve shown nearest to x.
  look(x) {
    this.links.look?.(x);
    const parts = [];
    for (const curve of this.shown()) {
      if (!curve.x.length) continue;
      let best = 0;
      curve.x.forEach((value, i) => { if (Math.abs(value - x) < Math.abs(curve.x[best] - x)) best = i; });
      const name = [curve.label, curve.names?.[best]].filter(Boolean).join(' ');
      const value = curve.kind === 'band' ? `${number(curve.y[best])} to ${number(curve.upper[best])}` : number(curve.y[best]);
      parts.push(`${name || this.plot.y_label} ${value}${curve.kind === 'points' ? ` at ${number(curve.x[best])}` : ''}`);
    }
    const place = this.x.place(x);
    this.cross.setAttribute('x1', place);
    this.cross.setAttribute('x2', place);
    this.cross.setAttribute('visibility', 'visible');
    this.readout.textContent = `${this.plot.x_label} ${number(x)}: ${parts.join(' · ')}`;
  }
  rows() {
    return this.shown().flatMap((c) => c.x.map((x, i) => [c.label || '', c.names?.[i] || '', number(x), number(c.y[i]),
      c.kind === 'band' ? number(c.upper[i]) : '']));
  }
}
