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

export const image_view = {
  coloured: true,
  picks: ['layer', 'head', 'query'],
  // Pictures are mostly dark: more weight is brighter over them in either theme.
  scale: (frame) => new Scale(frame.map.limit, frame.state.curve, 'dark'),
  // Begins with the first word that has something to find.
  state: (model) => ({ query: Math.max(0, model.queries.findIndex((_, query) => model.keys.some((_, key) => model.wanted(query, key)))) }),
  draw(frame, stage) {
    const { model } = frame, { picture } = model;
    const wide = Math.min(stage.clientWidth, 440), high = wide * picture.height / picture.width;
    const base = picture_canvas(picture);
    const layered = (query, live) => {
      const copy = el('canvas', { width: picture.width, height: picture.height });
      copy.getContext('2d').drawImage(base, 0, 0);
      return [copy, overlay(frame, query, picture.width, picture.height, live)];
    };
    const chosen = frame.state.query;
    const main = el('div', { class: 'image-main', style: { width: `${wide}px`, height: `${high}px` }, role: 'img', 'aria-label': this.words(frame, chosen) }, layered(chosen, true));
    const small = model.queries.length < 2 ? '' : el('div', { class: 'image-small' }, model.queries.slice(0, 64).map((query, i) =>
      el('button', { type: 'button', 'aria-pressed': i === chosen, 'data-item': i, 'aria-label': this.words(frame, i), onclick: () => frame.pick({ query: i }) },
        el('span', { class: 'image-thumb', style: { aspectRatio: `${picture.width} / ${picture.height}` } }, layered(i, false)), el('span', {}, query.text))));
    stage.append(el('div', { class: 'image-layout' }, main, small));
    frame.say(this.words(frame, chosen));
  },
  words(frame, query) {
    const { model } = frame;
    const best = frame.map.row(query).filter(([, w]) => w !== 0).sort((a, b) => b[1] - a[1])[0];
    const where = best ? `most at ${frame.name(model.keys, best[0], model.key_label)}, ${number(best[1])}` : 'nowhere';
    return `${frame.name(model.queries, query, model.query_label)}: ${where}`;
  },
};
