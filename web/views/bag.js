// A strip of instances, each with its weight beneath it; one strip for each query (bag). Bars are rescaled to the largest
// weight of the bag, numbers are not.

import { picker } from '../core/controls.js';
import { el, largest, roving, short_number } from '../core/dom.js';
import { marked } from '../core/frame.js';
import { picture_canvas } from '../core/model.js';

const MOST_CARDS = 200;

// The keys of a bag: those of its group, or all where groups are not used.
function members(model, query) {
  const group = model.queries[query].group ?? -1;
  return model.keys.map((_, key) => key).filter((key) => group < 0 || (model.keys[key].group ?? -1) === group);
}

// Of a large bag the heaviest and what the truth marks, in their order.
function heaviest(model, query, entries) {
  if (entries.length <= MOST_CARDS) return entries;
  const kept = new Set([...entries].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, MOST_CARDS).map(([key]) => key));
  return entries.filter(([key]) => kept.has(key) || model.wanted(query, key));
}

// Without a normaliser the numbers are no weights: the label says what they are, "none: margins over the tenth".
function legend_words(model) {
  const said = model.normaliser?.match(/^none: (.+)/)?.[1];
  return `bar: relative to the largest in its ${model.query_label}; the number: ${said || 'the weight itself'}`;
}

function card(frame, query, key, weight, top) {
  const { model } = frame, item = model.keys[key], wanted = model.wanted(query, key);
  const words = frame.describe(query, key, weight);
  const kind = ['card', wanted ? 'truth-sure' : '', item.picture ? '' : 'worded'].filter(Boolean).join(' ');
  return el('li', { class: kind, 'aria-label': words, 'data-key': key,
    onpointermove: (event) => frame.show_tip(event, words), onpointerleave: () => frame.hide_tip(), onfocus: () => frame.say(words) },
  item.picture ? picture_canvas(item.picture) : '',
  item.text ? el('span', { class: 'card-text' }, item.text) : '',
  el('span', { class: 'card-bar' }, weight === 0 ? '' : el('i', { class: weight < 0 ? 'minus' : '', style: { width: `${Math.max(1.5, 100 * Math.abs(weight) / top)}%` } })),
  el('span', { class: 'card-number' }, short_number(weight)));
}

export const bag_view = {
  state: () => ({ sorted: false }),
  controls: (frame) => [picker('order', ['as given', 'by weight'], 0, (i) => frame.set({ sorted: i === 1 }))],
  draw(frame, stage) {
    const { model } = frame, map = frame.map;
    model.queries.forEach((bag, query) => {
      const entries = members(model, query).map((key) => [key, map.at(query, key)]);
      const top = largest(entries.map(([, w]) => Math.abs(w))) || 1;
      const shown = heaviest(model, query, entries);
      if (frame.state.sorted) shown.sort((a, b) => b[1] - a[1] || a[0] - b[0]);
      const cards = shown.map(([key, weight]) => card(frame, query, key, weight, top));
      roving(cards);
      stage.append(el('section', { class: 'bag-strip' }, marked('h5', '', bag.text || `${model.query_label} ${query + 1}`),
        el('ul', {}, cards), entries.length > shown.length ? el('p', { class: 'axis-note' }, `${shown.length} of ${entries.length} shown, the heaviest`) : ''));
    });
    stage.append(el('div', { class: 'legend' }, el('span', {}, legend_words(model)),
      ...(model.has_truth ? frame.truth_keys() : [])));
  },
};
