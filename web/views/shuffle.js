// A set the reader shuffles: the members move, and every model answers again for the order shown. The tally keeps the
// smallest and largest answer of each.

import { button } from '../core/controls.js';
import { count, el, number, svg } from '../core/dom.js';
import { picture_canvas } from '../core/model.js';
import { reader_lines } from '../core/readers.js';

const MANY = 100;
const MOVE = { duration: 450, easing: 'cubic-bezier(0.3, 0, 0.2, 1)' };
const SIDE = 400, EDGE = 8;  // the longer side of a cloud of points, and the room round it
const MOST_TRIED = 200;

const still = () => matchMedia('(prefers-reduced-motion: reduce)').matches;

// Fisher and Yates.
function shuffled(order) {
  const out = [...order];
  for (let i = out.length - 1; i > 0; --i) {
    const j = Math.floor(Math.random() * (i + 1));
    [out[i], out[j]] = [out[j], out[i]];
  }
  return out;
}

// The orders tried so far and what was answered: `shown` the present one, `history` a row for each.
class Trial {
  constructor(model) {
    this.shuffle = model.shuffle;
    this.lines = reader_lines(model.shuffle);
    this.members = model.keys.length;
    this.begin();
  }
  begin() {
    this.history = [];
    this.answer(this.shuffle.orders?.[0] ?? Array.from({ length: this.members }, (_, i) => i));
    this.tally = this.lines.map((_, i) => ({ least: this.shown.answers[i], most: this.shown.answers[i] }));
  }
  // What is too large for the page was answered beforehand, for some orders: then those come in turn.
  next() {
    const { orders } = this.shuffle;
    this.answer(orders ? orders[this.history.length % orders.length] : shuffled(this.shown.order));
    this.tally.forEach((range, i) => {
      range.least = Math.min(range.least, this.shown.answers[i]);
      range.most = Math.max(range.most, this.shown.answers[i]);
    });
  }
  answer(order) {
    const drawn = this.history.length % (this.shuffle.orders?.length || 1);
    this.shown = { order, answers: this.lines.map((line) => line.at(order, drawn)) };
    this.history.push(this.shown);
  }
  get shuffles() {
    return this.history.length - 1;
  }
  words() {
    const ranges = this.lines.map(({ label }, i) => `${label}: ${exact(this.tally[i].least)} to ${exact(this.tally[i].most)}`);
    return `${count(this.shuffles, 'shuffle')}. ${ranges.filter((_, i) => !this.lines[i].aside).join('; ')}`;
  }
}

const exact = (value) => value.toFixed(4).replace('-', '−');

function cards(model, order) {
  return el('ol', { class: 'shuffle-cards' }, order.map((key) => {
    const item = model.keys[key];
    return el('li', { class: 'card', 'data-key': key }, item.picture ? picture_canvas(item.picture) : '', el('span', { class: 'card-text' }, item.text));
  }));
}

// Points in their places, and a line through them in the order in which they are read.
function cloud(model, order) {
  const places = model.keys.map((item) => item.position);
  const [x, y] = [0, 1].map((axis) => places.map((place) => place[axis]));
  const left = Math.min(...x), top = Math.max(...y), across = Math.max(...x) - left, down = top - Math.min(...y);
  const scale = (SIDE - 2 * EDGE) / (Math.max(across, down) || 1), width = scale * across + 2 * EDGE, height = scale * down + 2 * EDGE;
  const at = (key) => [EDGE + scale * (x[key] - left), EDGE + scale * (top - y[key])];
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'shuffle-cloud', role: 'img', style: { width: `${width}px` },
    'aria-label': `${count(order.length, model.key_label)} and the order in which they are read` },
  svg('polyline', { class: 'shuffle-line', points: order.map((key) => at(key).join(',')).join(' '), pathLength: 1 }),
  order.map((key) => { const [cx, cy] = at(key); return svg('circle', { cx, cy, r: 3.5 }); }));
}

function answer_table(trial) {
  const { answer } = trial.shuffle;
  return el('div', { class: 'scroll' }, el('table', { class: 'shuffle-answers' }, el('caption', {}, `After ${count(trial.shuffles, 'shuffle')}`),
    el('thead', {}, el('tr', {}, ['', `${answer} in this order`, 'smallest', 'largest', 'spread'].map((name) => el('th', { scope: 'col' }, name)))),
    el('tbody', {}, trial.lines.map(({ label }, i) => {
      const { least, most } = trial.tally[i];
      return el('tr', {}, el('th', { scope: 'row' }, label), el('td', { class: 'shuffle-now' }, trial.shown.answers[i].toFixed(6).replace('-', '−')),
        [exact(least), exact(most), number(most - least)].map((text) => el('td', {}, text)));
    }))));
}

// Where each member stands now, to move it from there.
function stands(stage) {
  return new Map([...stage.querySelectorAll('[data-key]')].map((node) => [node.dataset.key, node.getBoundingClientRect()]));
}

function move(stage, before) {
  for (const [key, now] of stands(stage)) {
    const was = before.get(key);
    stage.querySelector(`[data-key="${key}"]`).animate([{ transform: `translate(${was.left - now.left}px, ${was.top - now.top}px)` }, { transform: 'none' }], MOVE);
  }
  stage.querySelector('.shuffle-line')?.animate([{ strokeDasharray: '1', strokeDashoffset: 1 }, { strokeDasharray: '1', strokeDashoffset: 0 }], { ...MOVE, duration: 2 * MOVE.duration });
}

function press(frame, change) {
  const before = stands(frame.stage);
  change(frame.state.trial);
  frame.draw();
  if (!still()) move(frame.stage, before);
}

// What the model itself said, to hold the page's arithmetic against; and what the page could not work out.
function footnote({ lines, shuffle: { orders } }) {
  const given = lines.filter(({ aside }) => !aside).map(({ label, given }) => `${exact(given)} (${label})`).join(' and ');
  const drawn = orders ? ` What is too large for this page was answered beforehand, for ${count(orders.length, 'order')} that come in turn.` : '';
  return `For the order given the model itself, in C++, answered ${given}.${drawn}`;
}

export const shuffle_view = {
  picks: [],
  state: (model) => ({ trial: new Trial(model) }),
  controls: (frame) => [el('div', { class: 'shuffle-buttons' },
    el('button', { type: 'button', class: 'main', onclick: () => press(frame, (trial) => trial.next()) }, 'Shuffle'),
    button(`${MANY} times`, `Shuffle ${MANY} times`, () => press(frame, (trial) => { for (let i = 0; i < MANY; ++i) trial.next(); })),
    button('Start again', 'Back to the order given, and forget the tally', () => press(frame, (trial) => trial.begin())))],
  draw(frame, stage) {
    const { model } = frame, { trial } = frame.state;
    const placed = model.keys.every((item) => item.position?.length === 2);
    stage.append(placed ? cloud(model, trial.shown.order) : cards(model, trial.shown.order), answer_table(trial), el('p', { class: 'axis-note' }, footnote(trial)));
    frame.say(trial.words());
  },
  // The orders tried, the last first.
  rows: (frame) => {
    const { model } = frame, { trial } = frame.state;
    const named = ({ order, answers }, i) => [i || 'as given', order.map((key) => model.keys[key].text).join(' '), ...answers.map((value) => value.toFixed(6))];
    return { columns: ['shuffle', 'order', ...trial.lines.map(({ label }) => label)], rows: trial.history.map(named).reverse().slice(0, MOST_TRIED), total: trial.history.length };
  },
};
