// The four boxes of attention with their shapes filled in: query, key, value, and what they make.

import { el } from './dom.js';

function box(name, shape, kind) {
  return el('div', { class: `shape-box ${kind}` }, el('span', { class: 'shape-name' }, name), el('span', { class: 'shape-size' }, shape));
}

export function shapes_diagram(model) {
  const { query, key, value, weights, output } = model.shapes;
  const arrow = (text) => el('div', { class: 'shape-arrow' }, el('span', {}, text), el('i', { 'aria-hidden': 'true' }, '→'));
  return el('div', { class: 'shapes', role: 'img',
    'aria-label': `query ${query} and key ${key} give weights ${weights}; with value ${value}, output ${output}` },
  el('div', { class: 'shape-column' }, box('query', query, 'asks'), box('key', key, 'asked')), arrow(`${model.score || 'score'}, then ${model.normaliser || 'normalise'}`),
  el('div', { class: 'shape-column' }, box('weights', weights, 'made'), box('value', value, 'asked')), arrow('aggregate'),
  box('output', output, 'made'));
}
