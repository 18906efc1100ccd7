// The one idea, live: a query among five keys; score, normalise, aggregate, each as bars that move with it. Query, keys and values
// are dragged, or moved with the arrow keys.

import { category } from '../core/colour.js';
import { dial, radio_row } from '../core/controls.js';
import { clamp, el, number, plain, svg } from '../core/dom.js';
import { NORMALISERS } from './normalisers.js';
import { SCORES } from './scores.js';
import { STRUCTURES } from './structures.js';

const KEYS = [[-1.5, 0.9], [-0.6, -1.1], [0.4, 1.3], [1.2, -0.4], [1.6, 1.0]];
const VALUES = [10, 20, 30, 40, 50];
const REACH = 2;       // the plane runs from -REACH to REACH
const MOST_VALUE = 60;  // and the values from 0 to this
const SUBSCRIPTS = '₁₂₃₄₅';

function bars(values, texts, limit, signed) {
  return el('div', { class: 'demo-bars' }, values.map((value, i) => el('div', { class: 'demo-bar' },
    el('span', { class: 'demo-name', style: { color: category(i) } }, `k${SUBSCRIPTS[i]}`),
    el('span', { class: signed ? 'demo-track signed' : 'demo-track' }, el('i', { style: {
      background: category(i), width: `${clamp(Math.abs(value) / limit, 0, 1) * (signed ? 50 : 100)}%`,
      left: signed ? `${value < 0 ? 50 - clamp(-value / limit, 0, 1) * 50 : 50}%` : 0 } })),
    el('span', { class: 'demo-number' }, texts[i]))));
}

class Demo {
  constructor(host) {
    this.query = [1.0, 0.7];
    this.keys = KEYS.map((key) => [...key]);
    this.values = [...VALUES];
    this.place = 4;  // of the query, for structures
    this.chosen = { score: 'scaled dot', normaliser: 'softmax', structure: 'dense' };
    this.sharpness = 1;
    this.plane = svg('svg', { viewBox: '0 0 260 260', class: 'demo-plane', role: 'group', 'aria-label': 'Query and keys' });
    this.line = svg('svg', { viewBox: '0 0 260 74', class: 'demo-line', role: 'group', 'aria-label': 'Values' });
    this.steps = el('div', { class: 'demo-steps' });
    const choose = (what, choices) => radio_row(what, Object.keys(choices), Object.keys(choices).indexOf(this.chosen[what]),
      (i) => { this.chosen[what] = Object.keys(choices)[i]; this.draw(); });
    const coordinate = (axis, name) => dial(name, { minimum: -REACH, maximum: REACH, step: 0.05, value: this.query[axis], format: plain },
      (value) => { this.query[axis] = value; this.draw(); });
    this.dials = [coordinate(0, 'query x'), coordinate(1, 'query y')];
    host.replaceWith(el('figure', { class: 'demo', 'aria-label': 'Attention in three steps, live' },
      el('div', { class: 'controls' }, choose('score', SCORES), choose('normaliser', NORMALISERS), choose('structure', STRUCTURES),
        dial('score × ', { minimum: 0.2, maximum: 4, step: 0.1, value: 1, format: plain }, (value) => { this.sharpness = value; this.draw(); }),
        dial('place of the query', { minimum: 1, maximum: 5, step: 1, value: this.place + 1, format: plain }, (value) => { this.place = value - 1; this.draw(); })),
      el('div', { class: 'demo-body' }, el('div', {}, this.plane,
        el('p', { class: 'axis-note' }, 'Drag the query q, the keys and, below, the values; or focus one and use the arrow keys.'),
        this.line, el('div', { class: 'demo-dials' }, this.dials)), this.steps)));
    this.build();
    document.addEventListener('themechange', () => this.draw());
    this.draw();
  }

  // What can be dragged stays in the page, so that the pointer and the focus keep it; draw only moves it.
  build() {
    const place = (event, host) => {
      const box = host.getBoundingClientRect();
      return [clamp((event.clientX - box.left) / box.width, 0, 1), clamp((event.clientY - box.top) / box.height, 0, 1)];
    };
    const handle = (host, name, move, step) => {
      const node = svg('g', { class: 'demo-handle', tabindex: 0, role: 'slider', 'aria-label': name });
      node.addEventListener('pointerdown', (event) => { node.setPointerCapture(event.pointerId); event.preventDefault(); node.focus(); });
      node.addEventListener('pointermove', (event) => { if (node.hasPointerCapture(event.pointerId)) { move(place(event, host)); this.draw(); } });
      node.addEventListener('keydown', (event) => {
        const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
        if (!by) return;
        event.preventDefault();
        step(by);
        this.draw();
      });
      return node;
    };
    const in_plane = ([x, y]) => [(2 * x - 1) * REACH * 260 / 236, (1 - 2 * y) * REACH * 260 / 236].map((v) => clamp(v, -REACH, REACH));
    const point = (name, get) => handle(this.plane, name, (at) => { const to = in_plane(at), p = get(); [p[0], p[1]] = to; },
      ([dx, dy]) => { const p = get(); p[0] = clamp(p[0] + 0.1 * dx, -REACH, REACH); p[1] = clamp(p[1] + 0.1 * dy, -REACH, REACH); });
    this.handles = { keys: this.keys.map((key, i) => point(`key ${i + 1}`, () => key)), query: point('query', () => this.query),
      values: this.values.map((_, i) => handle(this.line, `value ${i + 1}`,
        ([x]) => { this.values[i] = Math.round(clamp((260 * x - 16) / 228, 0, 1) * MOST_VALUE); },
        ([dx, dy]) => { this.values[i] = clamp(this.values[i] + dx + dy, 0, MOST_VALUE); })) };
    this.edges = svg('g', {});
    this.scale = svg('g', {});
    this.plane.append(svg('line', { class: 'grid', x1: 0, x2: 260, y1: 130, y2: 130 }), svg('line', { class: 'grid', y1: 0, y2: 260, x1: 130, x2: 130 }),
      this.edges, ...this.handles.keys, this.handles.query);
    this.line.append(this.scale, ...this.handles.values);
  }

  // The weights of all keys: those the structure hides have none.
  weigh() {
    const { score, normaliser, structure } = this.chosen;
    const seen = this.keys.map((_, j) => STRUCTURES[structure](this.place, j));
    const scores = this.keys.map((key, j) => (seen[j] ? this.sharpness * SCORES[score](this.query, key, j) : null));
    const weights = NORMALISERS[normaliser](scores.filter((e) => e !== null));
    return { scores, weights: seen.map((yes) => (yes ? weights.shift() : 0)) };
  }

  draw() {
    const { scores, weights } = this.weigh(), { score, normaliser, structure } = this.chosen;
    const output = weights.reduce((sum, w, i) => sum + w * this.values[i], 0);
    this.dials.forEach((node, axis) => node.set(this.query[axis]));
    this.draw_plane(weights);
    this.draw_line(weights, output);
    const known = scores.map((e) => e ?? 0), limit = Math.max(1, ...known.map(Math.abs));
    const total = weights.reduce((a, b) => a + b, 0), signed = normaliser === 'none';
    const shares = weights.map((w, i) => w * this.values[i]);
    this.steps.replaceChildren(
      el('section', {}, el('h5', {}, '1 · score'), el('p', { class: 'axis-note' }, `${score}, q with each key`),
        bars(known, scores.map((e) => (e === null ? 'not seen' : number(e))), limit, true)),
      el('section', {}, el('h5', {}, '2 · normalise'), el('p', { class: 'axis-note' }, `${normaliser} over ${structure}; sum ${number(total)}`),
        bars(weights, weights.map(number), signed ? limit : 1, signed)),
      el('section', {}, el('h5', {}, '3 · aggregate'), el('p', { class: 'axis-note' }, 'weight × value, summed'),
        bars(shares, weights.map((w, i) => `${number(w)} × ${this.values[i]}`), Math.max(50, ...shares.map(Math.abs)), signed),
        el('p', { class: 'demo-output' }, 'output ', el('strong', { id: 'demo-output' }, number(output)))));
  }

  draw_plane(weights) {
    const X = (p) => 130 + p[0] / REACH * 118, Y = (p) => 130 - p[1] / REACH * 118;
    const limit = Math.max(...weights.map(Math.abs), 1e-9);
    this.edges.replaceChildren(...this.keys.map((key, i) => (weights[i] === 0 ? '' : svg('line', { x1: X(this.query), y1: Y(this.query), x2: X(key), y2: Y(key),
      stroke: category(i), 'stroke-width': 0.8 + 7 * Math.abs(weights[i]) / limit, 'stroke-opacity': 0.65, 'stroke-linecap': 'round' }))).filter(Boolean));
    this.handles.keys.forEach((node, i) => {
      const key = this.keys[i];
      node.setAttribute('aria-valuetext', `${number(key[0])}, ${number(key[1])}; weight ${number(weights[i])}`);
      node.replaceChildren(svg('circle', { cx: X(key), cy: Y(key), r: 9, fill: category(i), 'fill-opacity': weights[i] === 0 ? 0.45 : 1 }),
        svg('text', { class: 'demo-label', x: clamp(X(key), 14, 246), y: clamp(Y(key) + 23, 12, 254), 'text-anchor': 'middle' }, `k${SUBSCRIPTS[i]}`));
    });
    // The query's name stands in the widest gap between its lines.
    const turns = this.keys.map((key) => Math.atan2(Y(key) - Y(this.query), X(key) - X(this.query))).sort((a, b) => a - b);
    const gaps = turns.map((turn, i) => (turns[i + 1] ?? turns[0] + 2 * Math.PI) - turn), widest = gaps.indexOf(Math.max(...gaps));
    const aside = turns[widest] + gaps[widest] / 2;
    this.handles.query.setAttribute('aria-valuetext', `${number(this.query[0])}, ${number(this.query[1])}`);
    this.handles.query.replaceChildren(svg('circle', { class: 'demo-query', cx: X(this.query), cy: Y(this.query), r: 10 }),
      svg('text', { class: 'demo-label strong', x: clamp(X(this.query) + 20 * Math.cos(aside), 8, 252), y: clamp(Y(this.query) + 20 * Math.sin(aside) + 4, 12, 254), 'text-anchor': 'middle' }, 'q'));
  }

  draw_line(weights, output) {
    const X = (value) => 16 + 228 * value / MOST_VALUE, at = X(clamp(output, 0, MOST_VALUE));
    this.scale.replaceChildren(svg('line', { class: 'grid', x1: X(0), x2: X(MOST_VALUE), y1: 40, y2: 40 }),
      ...[0, 20, 40, 60].map((tick) => svg('text', { class: 'demo-label', x: X(tick), y: 68, 'text-anchor': 'middle' }, String(tick))),
      svg('line', { class: 'demo-mean', x1: at, x2: at, y1: 17, y2: 52 }),
      svg('text', { class: 'demo-label strong', x: clamp(at, 30, 230), y: 13, 'text-anchor': 'middle' }, 'output'));
    this.handles.values.forEach((node, i) => {
      node.setAttribute('aria-valuenow', this.values[i]);
      node.setAttribute('aria-valuemin', 0);
      node.setAttribute('aria-valuemax', MOST_VALUE);
      node.setAttribute('aria-valuetext', `${this.values[i]}; weight ${number(weights[i])}`);
      node.replaceChildren(svg('circle', { cx: X(this.values[i]), cy: 40, r: 8, fill: category(i), 'fill-opacity': weights[i] === 0 ? 0.45 : 1 }),
        svg('text', { class: 'demo-label', x: X(this.values[i]), y: 28, 'text-anchor': 'middle' }, `v${SUBSCRIPTS[i]}`));
    });
  }
}

export function start_demo(host) {
  return new Demo(host);
}
