// The one idea, live: a query among five keys; score, normalise, aggregate, each as bars that move with it.

import { category } from './core/colour.js';
import { dial, picker } from './core/controls.js';
import { clamp, el, number, plain, svg } from './core/dom.js';

const KEYS = [[-1.5, 0.9], [-0.6, -1.1], [0.4, 1.3], [1.2, -0.4], [1.6, 1.0]];
const VALUES = [10, 20, 30, 40, 50];
const REACH = 2;  // the plane runs from -REACH to REACH

const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
const length = (a) => Math.hypot(a[0], a[1]);

// log K and K are the two faces of a kernel; here every score is the number the normaliser takes.
const SCORES = {
  'dot product': (q, k) => dot(q, k),
  'scaled dot': (q, k) => dot(q, k) / Math.SQRT2,
  distance: (q, k) => -0.5 * length([q[0] - k[0], q[1] - k[1]]) ** 2,
  cosine: (q, k) => 3 * dot(q, k) / Math.max(1e-9, length(q) * length(k)),
  constant: () => 0,
};

function softmax(e) {
  const top = Math.max(...e), exps = e.map((x) => Math.exp(x - top)), sum = exps.reduce((a, b) => a + b, 0);
  return exps.map((x) => x / sum);
}

// Projection onto the simplex: sort down, k* = max{k : 1 + k e_(k) > sum of the k largest}.
function sparsemax(e) {
  const sorted = [...e].sort((a, b) => b - a);
  let sum = 0, tau = 0;
  sorted.forEach((x, i) => {
    sum += x;
    if (1 + (i + 1) * x > sum) tau = (sum - 1) / (i + 1);
  });
  return e.map((x) => Math.max(0, x - tau));
}

// The largest threshold tau with sum max(0, e/2 - tau)^2 = 1, by bisection.
function entmax(e) {
  let low = Math.max(...e) / 2 - 1, high = Math.max(...e) / 2;
  for (let i = 0; i < 60; ++i) {
    const middle = (low + high) / 2;
    if (e.reduce((sum, x) => sum + Math.max(0, x / 2 - middle) ** 2, 0) > 1) low = middle; else high = middle;
  }
  return e.map((x) => Math.max(0, x / 2 - low) ** 2);
}

const NORMALISERS = {
  softmax,
  '1.5-entmax': entmax,
  sparsemax,
  hard: (e) => e.map((_, i) => (i === e.indexOf(Math.max(...e)) ? 1 : 0)),
  uniform: (e) => e.map(() => 1 / e.length),
  none: (e) => e,
};

function bars(values, texts, limit, signed) {
  return el('div', { class: 'demo-bars' }, values.map((value, i) => el('div', { class: 'demo-bar' },
    el('span', { class: 'demo-name', style: { color: category(i) } }, `k${'₁₂₃₄₅'[i]}`),
    el('span', { class: signed ? 'demo-track signed' : 'demo-track' }, el('i', { style: {
      background: category(i), width: `${clamp(Math.abs(value) / limit, 0, 1) * (signed ? 50 : 100)}%`,
      left: signed ? `${value < 0 ? 50 - clamp(-value / limit, 0, 1) * 50 : 50}%` : 0 } })),
    el('span', { class: 'demo-number' }, texts[i]))));
}

class Demo {
  constructor(host) {
    this.query = [1.0, 0.7];
    this.score = 'scaled dot';
    this.normaliser = 'softmax';
    this.sharpness = 1;
    const size = this.size = 260;
    this.plane = svg('svg', { viewBox: `0 0 ${size} ${size}`, class: 'demo-plane', role: 'img' });
    this.plane.addEventListener('pointerdown', (event) => { this.plane.setPointerCapture(event.pointerId); this.drag(event); });
    this.plane.addEventListener('pointermove', (event) => { if (event.buttons) this.drag(event); });
    this.steps = el('div', { class: 'demo-steps' });
    const coordinate = (axis, name) => dial(name, { minimum: -REACH, maximum: REACH, step: 0.05, value: this.query[axis], format: plain },
      (value) => { this.query[axis] = value; this.draw(); });
    this.dials = [coordinate(0, 'query x'), coordinate(1, 'query y')];
    host.replaceWith(el('figure', { class: 'demo', 'aria-label': 'Attention in three steps, live' },
      el('div', { class: 'controls' },
        picker('score', Object.keys(SCORES), 1, (i) => { this.score = Object.keys(SCORES)[i]; this.draw(); }),
        picker('normaliser', Object.keys(NORMALISERS), 0, (i) => { this.normaliser = Object.keys(NORMALISERS)[i]; this.draw(); }),
        dial('score × ', { minimum: 0.2, maximum: 4, step: 0.1, value: 1, format: plain }, (value) => { this.sharpness = value; this.draw(); })),
      el('div', { class: 'demo-body' }, el('div', {}, this.plane, el('p', { class: 'axis-note' }, 'Drag the query q, or use the sliders.'), el('div', { class: 'demo-dials' }, this.dials)), this.steps)));
    document.addEventListener('themechange', () => this.draw());
    this.draw();
  }
  drag(event) {
    const box = this.plane.getBoundingClientRect();
    const place = (p, from, extent) => clamp((p - from) / extent * 2 * REACH - REACH, -REACH, REACH);
    this.query = [place(event.clientX, box.left, box.width), -place(event.clientY, box.top, box.height)];
    this.dials.forEach((node, axis) => node.set(this.query[axis]));
    this.draw();
  }
  draw() {
    const scores = KEYS.map((key) => this.sharpness * SCORES[this.score](this.query, key));
    const weights = NORMALISERS[this.normaliser](scores);
    const output = weights.reduce((sum, w, i) => sum + w * VALUES[i], 0);
    this.draw_plane(weights);
    const limit = Math.max(1, ...scores.map(Math.abs));
    const total = weights.reduce((a, b) => a + b, 0);
    this.steps.replaceChildren(
      el('section', {}, el('h5', {}, '1 · score'), el('p', { class: 'axis-note' }, `${this.score}, q with each key`), bars(scores, scores.map(number), limit, true)),
      el('section', {}, el('h5', {}, '2 · normalise'), el('p', { class: 'axis-note' }, `${this.normaliser}; sum ${number(total)}`), bars(weights, weights.map(number), this.normaliser === 'none' ? limit : 1, this.normaliser === 'none')),
      el('section', {}, el('h5', {}, '3 · aggregate'), el('p', { class: 'axis-note' }, 'weight × value, summed'),
        bars(weights.map((w, i) => w * VALUES[i]), weights.map((w, i) => `${number(w)} × ${VALUES[i]}`), Math.max(50, ...weights.map((w, i) => Math.abs(w * VALUES[i]))), this.normaliser === 'none'),
        el('p', { class: 'demo-output' }, 'output ', el('strong', { id: 'demo-output' }, number(output)))));
  }
  draw_plane(weights) {
    const { size } = this, X = (p) => size / 2 + p[0] / REACH * (size / 2 - 12), Y = (p) => size / 2 - p[1] / REACH * (size / 2 - 12);
    const limit = Math.max(...weights.map(Math.abs), 1e-9);
    this.plane.setAttribute('aria-label', `Query at ${number(this.query[0])}, ${number(this.query[1])}; weights ${weights.map((w, i) => `k${i + 1} ${number(w)}`).join(', ')}`);
    this.plane.replaceChildren(
      svg('line', { class: 'grid', x1: 0, x2: size, y1: size / 2, y2: size / 2 }), svg('line', { class: 'grid', y1: 0, y2: size, x1: size / 2, x2: size / 2 }),
      ...KEYS.map((key, i) => weights[i] === 0 ? '' : svg('line', { x1: X(this.query), y1: Y(this.query), x2: X(key), y2: Y(key), stroke: category(i), 'stroke-width': 0.8 + 7 * Math.abs(weights[i]) / limit, 'stroke-opacity': 0.65, 'stroke-linecap': 'round' })),
      ...KEYS.flatMap((key, i) => [svg('circle', { cx: X(key), cy: Y(key), r: 8, fill: category(i) }), svg('text', { class: 'demo-label', x: clamp(X(key), 22, size - 22), y: Y(key) + 22, 'text-anchor': 'middle' }, `v = ${VALUES[i]}`)]),
      svg('circle', { class: 'demo-query', cx: X(this.query), cy: Y(this.query), r: 9 }), svg('text', { class: 'demo-label strong', x: X(this.query) + 13, y: Y(this.query) - 8 }, 'q'));
  }
}

export function start_demo(host) {
  return new Demo(host);
}
