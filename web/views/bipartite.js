// Lines from queries to keys: the wider and stronger, the more weight. A query under the pointer, under the focus or chosen by
// a click stands alone with its numbers.

import { category } from '../core/colour.js';
import { dial } from '../core/controls.js';
import { clamp, el, number, plain, roving, short_number, shorten, shorten_to, svg } from '../core/dom.js';

const MOST_ITEMS = 300;
const THINNEST = 0.8, THICKEST = 6;  // px of a line
const FAN = 24;  // px that the lines of all heads to one key take together: less than a row

function line(x1, y1, x2, y2) {
  const bend = (x2 - x1) * 0.45;
  return `M${x1},${y1}C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`;
}

export const bipartite_view = {
  all_heads: true,
  // Where the truth is about one query, or tables go with queries, the picture begins with one chosen.
  state(model) {
    const asked = [...new Set([...model.truths.keys()].map((place) => Math.floor(place / model.keys.length)))];
    const by_query = model.tables.some((t) => (t.query ?? -1) !== -1);
    return { floor: 0.05, query: asked.length === 1 || by_query ? asked[0] ?? 0 : -1 };
  },
  controls: (frame) => [dial('hide below', { minimum: 0, maximum: 0.5, step: 0.01, value: frame.state.floor,
    format: plain }, (floor) => frame.set({ floor }))],
  draw(frame, stage) {
    const { model } = frame;
    const queries = model.queries.slice(0, MOST_ITEMS), keys = model.keys.slice(0, MOST_ITEMS);
    const chosen = frame.chosen(), limit = Math.max(...chosen.map(({ map }) => map.limit)) || 1;
    const width = clamp(stage.clientWidth, 280, 720), row = 32, top = 30;
    const height = top + row * Math.max(queries.length, keys.length) + 8;
    const most = clamp(width * 0.3, 96, 220), letters = Math.floor((most - 22) / 7.6);
    const column = (items, label, widest) => clamp(24 + 8.2 * Math.max(0.8 * label.length, ...items.map((item) => item.text.length)), 64, widest);
    const left = column(queries, model.query_label, most);
    // The keys may take what short queries leave, but for the lines and the numbers.
    const keys_most = clamp(width - left - 72 - 50, most, 190);
    const right = width - column(keys, model.key_label, keys_most) - 50;
    const offset = (n) => top + row * (Math.max(queries.length, keys.length) - n) / 2 + row / 2;
    const query_y = (i) => offset(queries.length) + i * row, key_y = (j) => offset(keys.length) + j * row;
    const font = `15px ${getComputedStyle(stage).fontFamily}`;
    const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': `Each ${model.query_label} and where it looks` });
    // A name that is wider than its column begins at the edge, so that nothing of it is cut.
    const wide = 7 * model.query_label.length > left - 10;
    root.append(svg('text', { class: 'side', x: wide ? 0 : left - 10, y: 14, 'text-anchor': wide ? 'start' : 'end' }, model.query_label),
      svg('text', { class: 'side', x: right + 10, y: 14 }, model.key_label));
    const lines = svg('g', { class: 'lines' }), labels = svg('g', {});
    const pairs = queries.flatMap((_, query) => chosen.flatMap(({ head, map }) => map.row(query)
      .filter(([key, weight]) => key < keys.length && weight !== 0 && Math.abs(weight) >= frame.state.floor)
      .map(([key, weight]) => ({ query, head, key, weight }))));
    pairs.sort((a, b) => Math.abs(a.weight) - Math.abs(b.weight));  // the strongest on top
    // Heads that look at the same key lie side by side, so that each shows its colour.
    const step = Math.min(THICKEST, FAN / chosen.length), thickest = Math.max(2.2, Math.min(THICKEST, step + 0.5));
    const aside = new Map(chosen.map(({ head }, i) => [head, (i - (chosen.length - 1) / 2) * step]));
    for (const { query, head, key, weight } of pairs) {
      const t = Math.abs(weight) / limit, shift = aside.get(head);
      lines.append(svg('path', { d: line(left, query_y(query) + shift, right, key_y(key) + shift), 'data-query': query, 'data-key': key,
        stroke: category(frame.state.head === -1 ? head : 0), 'stroke-width': THINNEST + (thickest - THINNEST) * t, 'stroke-opacity': 0.15 + 0.75 * t,
        'stroke-dasharray': weight < 0 ? '5 4' : 'none' },
      svg('title', {}, frame.describe(query, key, weight))));
    }
    for (const [place, kind] of model.truths) {
      const query = Math.floor(place / model.keys.length), key = place % model.keys.length;
      if (query >= queries.length || key >= keys.length) continue;
      // A pale line under the dashes parts them from the weight they lie on.
      for (const name of ['truth-line pale', `truth-line ${kind}`])
        lines.append(svg('path', { class: name, d: line(left, query_y(query), right, key_y(key)), 'data-query': query, 'data-key': key }));
    }
    const items = queries.map((item, i) => svg('g', { class: 'item', role: 'button', 'data-item': `q${i}`, 'aria-label': this.words(frame, i) },
      svg('rect', { x: 0, y: query_y(i) - row / 2 + 2, width: left - 2, height: row - 4, rx: 5 }),
      svg('text', { x: left - 10, y: query_y(i) + 5, 'text-anchor': 'end' }, shorten_to(shorten(item.text || String(i + 1), letters), left - 12, font))));
    const others = keys.map((item, j) => svg('g', { class: 'item key', 'data-key-item': j },
      svg('rect', { x: right + 2, y: key_y(j) - row / 2 + 2, width: width - right - 4, height: row - 4, rx: 5 }),
      svg('text', { x: right + 10, y: key_y(j) + 5 }, shorten_to(item.text || String(j + 1), keys_most - 8, font))));
    const numbers = svg('g', { class: 'numbers' });
    root.append(lines, ...items, ...others, labels, numbers);
    const pinned = frame.state.query >= 0 && frame.state.query < queries.length ? frame.state.query : null;
    const focus = (query, key) => {
      if (query === null && key === null) query = pinned;
      root.classList.toggle('one', query !== null || key !== null);
      for (const path of lines.children) {
        path.classList.toggle('on', query !== null ? path.dataset.query === String(query) : path.dataset.key === String(key));
      }
      numbers.replaceChildren();
      items.forEach((item, i) => item.classList.toggle('on', i === query));
      others.forEach((item, j) => item.classList.toggle('on', j === key));
      if (query === null && key === null) return;
      const map = frame.map;
      const numbered = query !== null ? map.row(query).map(([k, w]) => [key_y(k), w, k, width - 4]) : queries.map((_, q) => [query_y(q), map.at(q, key), q, 44]);
      for (const [y, weight, at, x] of numbered) {
        if (frame.state.head === -1 || Math.abs(weight) < 5e-4 || at >= MOST_ITEMS) continue;  // smaller ones are in the table
        numbers.append(svg('text', { x, y: y + 4, 'text-anchor': 'end' }, number(weight)));
      }
      if (query !== null) frame.say(this.words(frame, query));
    };
    items.forEach((item, i) => {
      item.addEventListener('pointerenter', () => focus(i, null));
      item.addEventListener('focus', () => focus(i, null));
      item.addEventListener('blur', () => focus(null, null));
      const choose = () => frame.pick({ query: i === pinned && !frame.picks().includes('query') ? -1 : i });
      item.addEventListener('click', choose);
      item.addEventListener('keydown', (event) => { if (event.key === 'Enter') choose(); });
    });
    others.forEach((item, j) => item.addEventListener('pointerenter', () => focus(null, j)));
    root.addEventListener('pointerleave', () => focus(null, null));
    roving(items, false);
    stage.append(root, this.keys(frame));
    focus(null, null);
    if (queries.length < model.queries.length || keys.length < model.keys.length) {
      stage.append(el('p', { class: 'axis-note' }, `The first ${MOST_ITEMS} items of a side are drawn; the data table and the matrix view hold all.`));
    }
  },
  // Where one query looks, in words: its three largest weights.
  words(frame, query) {
    const { model } = frame;
    const parts = frame.chosen().map(({ head, map }) => {
      const best = map.row(query).filter(([, w]) => w !== 0).sort((a, b) => b[1] - a[1]).slice(0, frame.state.head === -1 ? 1 : 3);
      const list = best.map(([key, w]) => `${frame.name(model.keys, key, model.key_label)} ${short_number(w)}`).join(', ') || 'nothing';
      return frame.state.head === -1 ? `${model.heads.label} ${model.heads.names[head]}: ${list}` : list;
    });
    return `${frame.name(model.queries, query, model.query_label)} → ${parts.join('; ')}`;
  },
  keys(frame) {
    const { model } = frame;
    return el('div', { class: 'legend' },
      frame.state.head === -1 ? model.heads.names.map((name, i) => el('span', {}, el('i', { class: 'swatch', style: { background: category(i) } }), name)) : '',
      el('span', {}, `line width and strength: weight, largest ${number(Math.max(...frame.chosen().map(({ map }) => map.limit)))}; exact zeros have no line`),
      model.truths.size ? el('span', {}, el('i', { class: 'swatch truth-key' }), `${model.truth.label || 'truth'} (dashed)`) : '');
  },
};
