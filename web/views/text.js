// Keys as running text, each word shaded by its weight; a document where the groups (sentences) carry weights of their own.

import { Scale } from '../core/colour.js';
import { el, largest, number, roving } from '../core/dom.js';

const MOST_WORDS = 4000;   // drawn at once; the rest on request
const MOST_ROWS = 6;       // queries (or heads) shown one under another

function words_of(frame, entries, scale, shade, row) {
  const { model } = frame;
  const spans = entries.map(([key, weight]) => {
    const shown = shade(key, weight);
    const truth = model.truth_at(row.query, key);
    const wanted = model.wanted(row.query, key);
    return el('span', { class: wanted ? `word truth-${truth === 'possible' ? 'possible' : 'sure'}` : 'word',
      role: 'img', 'aria-label': frame.describe(row.query, key, weight), 'data-key': key, 'data-weight': weight,
      style: { background: scale.css(shown), color: scale.ink(shown) },
      onpointermove: (event) => frame.show_tip(event, frame.describe(row.query, key, weight)),
      onpointerleave: () => frame.hide_tip(),
      onfocus: () => frame.say(frame.describe(row.query, key, weight)) }, model.keys[key].text || '∅');
  });
  return spans;
}

function paragraph(frame, row, scale) {
  const entries = row.map.dense ? row.map.row(row.query) : frame.model.keys.map((_, key) => [key, row.map.at(row.query, key)]);
  const host = el('p', { class: 'words' });
  let drawn = 0;
  const spans = [];
  const more = () => {
    const next = words_of(frame, entries.slice(drawn, drawn + MOST_WORDS), scale, (_, weight) => weight, row);
    drawn += next.length;
    spans.push(...next);
    host.append(...next.flatMap((span) => [span, ' ']));
    if (drawn < entries.length) {
      const button = el('button', { type: 'button', onclick: () => { button.remove(); more(); } }, `${entries.length - drawn} more words`);
      host.append(button);
    }
    roving(spans);
  };
  more();
  return host;
}

const has_bars = (model) => model.groups.some((group) => group.weight !== undefined);
const stacked = (model) => !has_bars(model) && model.queries.length > 1 && model.queries.length <= MOST_ROWS;
const shade_in = (model) => (key, weight) => Math.sqrt(Math.max(0, model.groups[model.keys[key].group]?.weight ?? 0)) * weight;

function sentence_row(group, spans, top, scale) {
  const weight = group.weight ?? 0;
  return el('div', { class: group.truth ? 'sentence truth-sure' : 'sentence' },
    el('div', { class: 'bar', role: 'img', 'aria-label': `${group.name}: sentence weight ${number(weight)}${group.truth ? ', truth' : ''}` },
      el('i', { style: { width: `${100 * weight / top}%`, background: scale.css(scale.limit) } })),
    el('span', { class: 'bar-number' }, number(weight)),
    el('p', { class: 'words' }, spans.flatMap((span) => [span, ' '])));
}

// Sentence bars on the left; words shaded by √(sentence weight) × word weight, as in the paper on hierarchical attention.
function document_rows(frame, stage) {
  const { model } = frame, map = frame.map, query = frame.state.query;
  const shade = shade_in(model), scale = frame.scale;
  const by_group = model.groups.map(() => []);
  model.keys.forEach((item, key) => { if ((item.group ?? -1) >= 0) by_group[item.group].push([key, map.at(query, key)]); });
  const top = largest(model.groups.map((g) => g.weight ?? 0)) || 1;
  const all = [], host = el('div', { class: 'document' });
  let next = 0;
  const more = () => {
    for (const end = all.length + MOST_WORDS; next < model.groups.length && all.length < end; ++next) {
      const spans = words_of(frame, by_group[next], scale, shade, { query });
      all.push(...spans);
      host.append(sentence_row(model.groups[next], spans, top, scale));
    }
    if (next < model.groups.length) {
      const button = el('button', { type: 'button', onclick: () => { button.remove(); more(); } }, `${model.groups.length - next} more sentences`);
      host.append(button);
    }
    roving(all);
  };
  more();
  stage.append(host);
  stage.append(el('p', { class: 'axis-note' }, 'bars: sentence weight · word shade: √(sentence weight) × word weight'));
}

export const text_view = {
  coloured: true,
  all_heads: true,
  picks: (model) => stacked(model) ? ['layer', 'head'] : ['layer', 'head', 'query'],
  state: (model) => ({ head: model.heads.names.length > 1 && model.heads.names.length <= MOST_ROWS && !has_bars(model) ? -1 : 0 }),
  // Of a document, what the words are shaded by: the legend then says so too.
  scale(frame) {
    const { model } = frame;
    if (!has_bars(model)) return null;
    const shade = shade_in(model), map = frame.map;
    return new Scale(largest(model.keys.map((_, key) => shade(key, map.at(frame.state.query, key)))), frame.state.curve);
  },
  draw(frame, stage) {
    const { model } = frame;
    if (has_bars(model)) return document_rows(frame, stage);
    const queries = stacked(model) ? model.queries.map((_, i) => i) : [frame.state.query];
    const rows = queries.flatMap((query) => frame.chosen().map(({ head, map }) => ({ query, head, map })));
    stage.append(el('div', { class: 'text-rows' }, rows.map((row) => {
      const name = [queries.length > 1 ? model.queries[row.query].text : '', rows.length > queries.length ? `${model.heads.label} ${model.heads.names[row.head]}` : ''].filter(Boolean).join(' · ');
      return el('div', { class: 'text-row' }, name ? el('h5', {}, name) : '', paragraph(frame, row, frame.scale));
    })));
  },
};
