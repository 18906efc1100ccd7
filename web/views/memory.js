// Items x hops: each hop's weight beside each item, the classic table of memory networks.

import { el, roving } from '../core/dom.js';

export const memory_view = {
  coloured: true,
  draw(frame, stage) {
    const { model } = frame, scale = frame.scale, map = frame.map, cells = [];
    const body = model.keys.map((item, key) => {
      const wanted = model.queries.some((_, query) => model.wanted(query, key));
      return el('tr', { class: wanted ? 'wanted' : '' }, el('th', { scope: 'row' }, item.text),
        model.queries.map((_, query) => {
          const weight = map.at(query, key);
          const cell = el('td', { class: model.wanted(query, key) ? 'weight truth-sure' : 'weight', 'aria-label': frame.describe(query, key, weight),
            style: { background: scale.css(weight), color: scale.ink(weight) },
            onpointermove: (event) => frame.show_tip(event, frame.describe(query, key, weight)), onpointerleave: () => frame.hide_tip(),
            onfocus: () => frame.say(frame.describe(query, key, weight)) }, weight === 0 ? '' : weight.toFixed(2).replace(/^0/, ''));
          cells.push(cell);
          return cell;
        }));
    });
    roving(cells);
    stage.append(el('div', { class: 'scroll' }, el('table', { class: 'memory-table' },
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, model.key_label), model.queries.map((query) => el('th', { scope: 'col' }, query.text)))),
      el('tbody', {}, body))));
  },
};
