// Regions over a picture: one overlay for each query (word, hop), large for the chosen one and small for all.

import { Scale } from '../core/colour.js';
import { el, number, svg } from '../core/dom.js';
import { picture_canvas } from '../core/model.js';

// Cells, not a blur: what is drawn is exactly the weight of each region.
function overlay(frame, query, width, height, live) {
  const { model } = frame, scale = frame.scale, map = frame.map;
  const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'regions', 'aria-hidden': live ? null : 'true' });
  model.keys.forEach((item, key) => {
    const [x, y, w, h] = item.position, weight = map.at(query, key), box = { x: x * width, y: y * height, width: w * width, height: h * height };
    const rect = svg('rect', { ...box, fill: weight === 0 ? 'transparent' : scale.css(weight), 'fill-opacity': weight === 0 ? 0 : 0.25 + 0.6 * scale.fraction(weight) });
    if (live) {
      rect.addEventListener('pointermove', (event) => frame.show_tip(event, frame.describe(query, key, weight)));
      rect.addEventListener('pointerleave', () => frame.hide_tip());
    }
    root.append(rect);
  });
  model.keys.forEach((item, key) => {
    const truth = model.truth_at(query, key);
    if (!model.wanted(query, key)) return;
    const [x, y, w, h] = item.position;
    root.append(svg('rect', { class: `truth ${truth === 'possible' ? 'possible' : 'sure'}`, x: x * width + 0.5, y: y * height + 0.5,
      width: w * width - 1, height: h * height - 1, 'stroke-width': live ? 2 : 1, 'vector-effect': 'non-scaling-stroke' }));
  });
  return root;
}

// Columns and rows where the regions part the picture into a grid that is fine enough to be drawn smoothly; null: they do not.
function grid_of(model) {
  const [, , w, h] = model.keys[0].position, columns = Math.round(1 / w), rows = Math.round(1 / h);
  const in_order = model.keys.length === columns * rows && model.keys.every(({ position: [x, y] }, key) =>
    Math.abs(x - key % columns / columns) < 1e-3 && Math.abs(y - Math.floor(key / columns) / rows) < 1e-3);
  return in_order && columns >= 5 && rows >= 5 ? { columns, rows } : null;
}

// The weights drawn as the paper does: from the middle of one region to the middle of the next without a step.
function smooth(frame, query, { columns, rows }, width, height) {
  const cells = el('canvas', { width: columns, height: rows }), pixels = new ImageData(columns, rows);
  for (let key = 0; key < columns * rows; ++key) {
    const weight = frame.map.at(query, key);
    pixels.data.set([...(frame.scale.rgb(weight) || frame.scale.rgb(1e-9)), Math.round(217 * frame.scale.fraction(weight))], 4 * key);
  }
  cells.getContext('2d').putImageData(pixels, 0, 0);
  const out = el('canvas', { width, height, class: 'smooth' }), context = out.getContext('2d');
  context.imageSmoothingQuality = 'high';
  context.drawImage(cells, 0, 0, width, height);
  return out;
}

export const image_view = {
  coloured: true,
  picks: ['layer', 'head', 'query'],
  // Pictures are mostly dark: more weight is brighter over them in either theme.
  scale: (frame) => new Scale(frame.map.limit, frame.state.curve, 'dark'),
  // Begins with the first word that has something to find; where nothing is known of that, with the one that looks at a place most.
  state(model) {
    const known = model.queries.findIndex((_, query) => model.keys.some((_, key) => model.wanted(query, key)));
    if (known >= 0 || !model.maps.length) return { query: Math.max(0, known) };
    const map = model.map(model.layers.chosen || 0, model.heads.chosen || 0);
    const most = model.queries.map((_, query) => map.row(query).reduce((top, [, weight]) => Math.max(top, weight), 0));
    return { query: most.indexOf(Math.max(...most)) };
  },
  draw(frame, stage) {
    const { model } = frame, { picture } = model;
    const grid = grid_of(model);
    const wide = Math.min(stage.clientWidth, grid ? 330 : 440), high = wide * picture.height / picture.width;
    const base = picture_canvas(picture);
    const copied = () => {
      const copy = el('canvas', { width: picture.width, height: picture.height });
      copy.getContext('2d').drawImage(base, 0, 0);
      return copy;
    };
    const layered = (query, live) => [copied(), overlay(frame, query, picture.width, picture.height, live)];
    const chosen = frame.state.query;
    const size = { width: `${wide}px`, height: `${high}px` };
    const main = el('div', { class: 'image-main', style: size, role: 'img', 'aria-label': this.words(frame, chosen) }, layered(chosen, true));
    const blurred = !grid ? '' : el('figure', { class: 'image-smooth' },
      el('div', { class: 'image-main', style: size, role: 'img', 'aria-label': `${this.words(frame, chosen)}, drawn smoothly` },
        copied(), smooth(frame, chosen, grid, Math.round(wide), Math.round(high))),
      el('figcaption', {}, 'the same weights, drawn smoothly between the middles of the regions'));
    const small = model.queries.length < 2 ? '' : el('div', { class: 'image-small' }, model.queries.slice(0, 64).map((query, i) =>
      el('button', { type: 'button', 'aria-pressed': i === chosen, 'data-item': i, 'aria-label': this.words(frame, i), onclick: () => frame.pick({ query: i }) },
        el('span', { class: 'image-thumb', style: { aspectRatio: `${picture.width} / ${picture.height}` } }, layered(i, false)), el('span', {}, query.text))));
    stage.append(el('div', { class: 'image-layout' }, main, blurred, small));
    frame.say(this.words(frame, chosen));
  },
  words(frame, query) {
    const { model } = frame;
    const best = frame.map.row(query).filter(([, w]) => w !== 0).sort((a, b) => b[1] - a[1])[0];
    const where = best ? `most at ${frame.name(model.keys, best[0], model.key_label)}, ${number(best[1])}` : 'nowhere';
    return `${frame.name(model.queries, query, model.query_label)}: ${where}`;
  },
};
