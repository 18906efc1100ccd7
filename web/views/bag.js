// A strip of instances, each with its weight beneath it; one strip for each query (bag). Bars are rescaled to the largest
// weight of the bag, numbers are not.

import { picker } from '../core/controls.js';
import { el, largest, number, roving } from '../core/dom.js';
import { picture_canvas } from '../core/model.js';

const MOST_CARDS = 200;

// The keys of a bag: those of its group, or all where groups are not used.
function members(model, query) {
  const group = model.queries[query].group ?? -1;
  return model.keys.map((_, key) => key).filter((key) => group < 0 || (model.keys[key].group ?? -1) === group);
}

function card(frame, query, key, weight, top) {
  const { model } = frame, item = model.keys[key], wanted = model.wanted(query, key);
  const words = frame.describe(query, key, weight);
  return el('li', { class: wanted ? 'card truth-sure' : 'card', 'aria-label': words, 'data-key': key,
    onpointermove: (event) => frame.show_tip(event, words), onpointerleave: () => frame.hide_tip(), onfocus: () => frame.say(words) },
  item.picture ? picture_canvas(item.picture) : '',
  item.text ? el('span', { class: 'card-text' }, item.text) : '',
  el('span', { class: 'card-bar' }, weight === 0 ? '' : el('i', { class: weight < 0 ? 'minus' : '', style: { width: `${Math.max(1.5, 100 * Math.abs(weight) / top)}%` } })),
  el('span', { class: 'card-number' }, number(weight)));
}

export const bag_view = {
  state: () => ({ sorted: false }),
  controls: (frame) => [picker('order', ['as given', 'by weight'], 0, (i) => frame.set({ sorted: i === 1 }))],
  draw(frame, stage) {
    const { model } = frame, map = frame.map;
    model.queries.forEach((bag, query) => {
      const entries = members(model, query).map((key) => [key, map.at(query, key)]);
      const top = largest(entries.map(([, w]) => Math.abs(w))) || 1;
      if (frame.state.sorted) entries.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      const cards = entries.slice(0, MOST_CARDS).map(([key, weight]) => card(frame, query, key, weight, top));
      roving(cards);
      stage.append(el('section', { class: 'bag-strip' }, el('h5', {}, bag.text || `${model.query_label} ${query + 1}`),
        el('ul', {}, cards), entries.length > MOST_CARDS ? el('p', { class: 'axis-note' }, `${MOST_CARDS} of ${entries.length} shown`) : ''));
    });
    stage.append(el('div', { class: 'legend' }, el('span', {}, 'bar: weight relative to the largest in its bag; the number is the weight itself'),
      ...(model.has_truth ? frame.truth_keys() : [])));
  },
};
