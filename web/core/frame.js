// The frame round every picture: title, pickers, score, normaliser, structure and scale, the number under the pointer, a table that says
// the same in words, downloads. A view only draws.

import { Scale } from './colour.js';
import { button, picker } from './controls.js';
import { cell_text, clamp, count, el, number, unique } from './dom.js';
import { figure_png, figure_svg, save } from './export.js';
import { Model } from './model.js';
import { PlotFigure } from './plot.js';
import { shapes_diagram } from './shapes.js';

// How systems say that an answer is wrong: "wrong: …", "… (wrong: one bit)", "…; right: kitchen", "missed, …".
const WRONG = /^wrong: |\(wrong[:;)]|\(right: |; (wrong|right|missing): |: missed, /;

// What a model said, with a cross before it where it is wrong.
export function marked(tag, name, said) {
  const wrong = WRONG.test(said);
  return el(tag, { class: [name, wrong ? 'wrong' : ''].filter(Boolean).join(' ') || undefined }, wrong ? el('span', { class: 'wrong-mark' }, '✗ ') : '', said);
}

const MOST_TABLE_ROWS = 400;
const MOST_NAMED = 60;
// px of a picture; a taller one is cut, and opens on demand. Less on a narrow page, and where the tabs of many pictures need room.
const TALLEST = 2050, TALLEST_AMONG_MANY = 1650, TALLEST_NARROW = 1200;
const WIDE = 700;  // px of a picture on a wide page
const NEARLY_EVEN = 1.25;  // times what even attention would be

export class Frame {
  constructor(host, explanation, view) {
    this.model = new Model(explanation);
    this.view = view;
    this.all_heads = Boolean(view.all_heads) && this.model.heads.names.length > 1;
    this.state = { layer: this.model.layers.chosen || 0, head: this.all_heads ? -1 : this.model.heads.chosen || 0, query: 0, curve: 'linear', ...view.state?.(this.model) };
    this.build(host);
    this.draw();
    let width = this.stage.clientWidth;
    new ResizeObserver(() => {
      // A hidden stage has no width; what was drawn last stays.
      if (Math.abs(this.stage.clientWidth - width) < 2 || this.stage.clientWidth < 40) return;
      width = this.stage.clientWidth;
      this.draw();
    }).observe(this.stage);
    // A frame that a newer one has replaced leaves nothing behind.
    const redraw = () => {
      if (this.figure.isConnected) this.draw();
      else document.removeEventListener('themechange', redraw);
    };
    document.addEventListener('themechange', redraw);
  }

  build(host) {
    const { model } = this;
    const title = unique('title');
    this.controls = el('div', { class: 'controls', 'data-export': 'no' });
    this.stage = el('div', { class: `stage ${model.view}` });
    this.readout = el('p', { class: 'readout', 'aria-live': 'polite', 'data-export': 'no' });
    this.legend = el('div', { class: 'legend' });
    this.labels = el('dl', { class: 'labels' });
    this.verdict = el('p', { class: 'verdict' });
    this.plots = (model.plots || []).map((plot) => new PlotFigure(plot.title === model.title ? { ...plot, title: '' } : plot, { look: (x) => this.look(x), step: (step) => this.follow(plot, step) }));
    this.tables = el('div', { class: 'tables' });
    this.tip = el('div', { class: 'tip', role: 'presentation', hidden: true });
    this.opener = el('button', { type: 'button', class: 'opener', hidden: true, onclick: () => { this.opened = !this.opened; this.draw(); } });
    // A plot with a slider is the demonstration, and so is any where there are no weights or too many columns to be named: it leads,
    // and weights and tables follow.
    const leads = model.view === 'curve' || model.plots.some((plot) => plot.slider) || (model.plots.length > 0 && model.view === 'matrix' && model.keys.length > MOST_NAMED);
    const plots = this.plots.length ? el('div', { class: this.plots.length > 2 ? 'plots many' : 'plots' }, this.plots.map((plot) => plot.host)) : '';
    this.picture = el('div', { class: 'picture' },
      el('h4', { id: title }, model.title), ...(model.outcome ? model.outcome.split('\n').map((line) => marked('p', 'outcome', line)) : []),
      model.shapes ? shapes_diagram(model) : '', leads ? plots : '', this.controls, this.stage, this.legend, this.labels, this.verdict,
      this.tables, leads ? '' : plots);
    this.figure = el('figure', { class: 'explanation', 'aria-labelledby': title, 'data-system': model.system },
      this.picture, this.opener, this.readout,
      model.notes.length ? el('ul', { class: 'notes' }, model.notes.map((note) => el('li', {}, note))) : '',
      this.tools(), this.tip);
    this.figure.frame = this;
    host.replaceWith(this.figure);
    this.build_controls();
  }

  picks() {
    const { picks } = this.view;
    const wanted = (typeof picks === 'function' ? picks(this.model) : picks) || ['layer', 'head'];
    const by_query = this.model.tables.some((t) => (t.query ?? -1) !== -1);
    return by_query && !wanted.includes('query') ? [...wanted, 'query'] : wanted;
  }

  build_controls() {
    const { model, state } = this, { layers, heads } = model, pick = [];
    const picks = this.picks();
    if (picks.includes('layer') && layers.names.length > 1 && !this.layers_slide) {
      pick.push(picker(layers.label, layers.names, state.layer, (layer) => this.set({ layer })));
    }
    if (picks.includes('head') && heads.names.length > 1) {
      const names = this.all_heads ? ['all', ...heads.names] : heads.names;
      const shift = this.all_heads ? 1 : 0;
      pick.push(picker(heads.label, names, state.head + shift, (i) => this.set({ head: i - shift })));
    }
    if (picks.includes('query') && model.queries.length > 1) {
      pick.push(picker(model.query_label, model.queries.map((q, i) => q.text || String(i)), state.query,
        (query) => this.set({ query })));
    }
    if (this.view.coloured) {
      pick.push(picker('colour', ['linear', 'square root'], state.curve === 'root' ? 1 : 0, (i) => this.set({ curve: i ? 'root' : 'linear' })));
    }
    this.controls.append(...pick, ...(this.view.controls?.(this) || []));
    this.controls.hidden = !this.controls.children.length;
  }

  set(change) {
    Object.assign(this.state, change);
    this.draw();
  }

  // A plot's slider that is named as the layers are moves the weights too.
  get layers_slide() {
    return this.model.plots.some((plot) => plot.slider?.label === this.model.layers.label);
  }
  follow(plot, step) {
    if (plot.slider.label !== this.model.layers.label || !this.model.layers.names[step]) return;
    this.state.layer = step;
    this.draw_weights();
  }

  // A reader's eye at x on a plot: the query nearest to it is pointed at, and plots with a step for each query show its step. Queries
  // have a place on the plot where they have a position.
  look(x) {
    const { queries } = this.model;
    if (!queries.length || !queries.every((query) => query.position?.length === 2)) return;
    let best = 0;
    queries.forEach((query, i) => { if (Math.abs(query.position[0] - x) < Math.abs(queries[best].position[0] - x)) best = i; });
    if (best === this.looked) return;
    this.looked = best;
    for (const plot of this.plots) if (plot.plot.slider?.label === this.model.query_label) plot.show_step(best);
    this.point_at?.(best);
  }

  // As set, for what a picker shows as well: the pickers follow.
  pick(change) {
    Object.assign(this.state, change);
    this.controls.replaceChildren();
    this.build_controls();
    this.draw();
  }

  // The maps now chosen, with the head each belongs to.
  chosen() {
    const { layer, head } = this.state;
    const heads = head === -1 ? this.model.heads.names.map((_, i) => i) : [head];
    return heads.map((i) => ({ head: i, map: this.model.map(layer, i) }));
  }
  get map() {
    return this.model.map(this.state.layer, Math.max(0, this.state.head));
  }
  get scale() {
    return this.view.scale?.(this)
      || new Scale(Math.max(...this.chosen().map(({ map }) => map.limit)), this.state.curve);
  }

  draw() {
    const focused = this.stage.contains(document.activeElement) ? document.activeElement.dataset.item : undefined;
    const scroll = this.stage.scrollLeft;
    this.hide_tip();
    this.draw_weights();
    this.stage.scrollLeft = scroll;
    if (focused !== undefined) this.stage.querySelector(`[data-item="${CSS.escape(focused)}"]`)?.focus();
    this.draw_tables();
    for (const plot of this.plots) plot.draw();
    if (this.details?.open) this.fill_details();
    this.cut();
  }

  // Views that draw later, when they know how high they are, ask for it again.
  cut() {
    this.picture.classList.remove('tall');
    const many = this.figure.closest('.pictures')?.querySelector('.more-tabs');
    const tallest = this.picture.clientWidth < WIDE ? TALLEST_NARROW : many ? TALLEST_AMONG_MANY : TALLEST;
    this.picture.style.setProperty('--tallest', `${tallest}px`);
    const tall = this.picture.scrollHeight > tallest;
    this.picture.classList.toggle('tall', tall && !this.opened);
    this.opener.hidden = !tall;
    this.opener.textContent = this.opened ? 'Show less of the picture' : 'Show the whole picture';
    this.opener.setAttribute('aria-expanded', Boolean(this.opened));
  }

  // Files have a tall picture whole.
  async whole(use) {
    const tall = this.picture.classList.contains('tall');
    this.picture.classList.remove('tall');
    try {
      return await use();
    } finally {
      this.picture.classList.toggle('tall', tall);
    }
  }

  draw_weights() {
    this.stage.replaceChildren();
    this.view.draw?.(this, this.stage);
    this.draw_legend();
    this.draw_labels();
    this.draw_verdict();
  }

  // What every key would get if attention were even, where each query sees all keys and its weights sum to one.
  get even() {
    const { model } = this;
    const sums = /softmax|sparsemax|entmax|kernel ratio/.test(model.normaliser || '') && !/signed/.test(model.normaliser);
    const part = /causal|window|prefix|first|strided|fixed|blocks|documents|ragged|graph|keep/.test(model.structure || '');
    return sums && !part && model.keys.length > 1 && !model.groups.length ? 1 / model.keys.length : null;
  }

  draw_legend() {
    this.legend.replaceChildren();
    if (!this.model.maps.length || !this.view.coloured) return;
    const scale = this.scale;
    const maps = this.chosen().map(({ map }) => map);
    const low = Math.min(...maps.map((map) => map.minimum)) < 0 ? -scale.limit : 0;
    const bar = el('canvas', { width: 160, height: 1, class: 'ramp', 'aria-hidden': 'true' });
    const context = bar.getContext('2d');
    for (let x = 0; x < 160; ++x) {
      const weight = low + (scale.limit - low) * (x + 0.5) / 160;
      context.fillStyle = scale.css(weight);
      context.fillRect(x, 0, 1, 1);
    }
    const even = low === 0 && this.even !== null && this.even < scale.limit ? this.even : null;
    const mark = even === null ? '' : el('i', { class: 'even', style: { left: `${100 * even / scale.limit}%` } });
    this.legend.append(el('span', { class: 'legend-scale' }, number(low), el('span', { class: 'ramp-box' }, bar, mark), number(scale.limit),
      this.state.curve === 'root' ? ' (square root)' : ''),
    even === null ? '' : el('span', { class: 'even-note' }, el('i', { class: 'swatch even' }), `even attention: 1/${this.model.keys.length} = ${number(even)}${scale.limit < NEARLY_EVEN * even ? '; these weights are nearly even' : ''}`),
    el('span', {}, el('i', { class: 'swatch zero' }), 'exactly 0'));
    if (this.model.has_truth) this.legend.append(...this.truth_keys());
  }
  truth_keys() {
    const label = this.model.truth.label || 'truth';
    if (this.model.truth_dense) return [el('span', {}, el('i', { class: 'swatch sure' }), label)];
    const possible = (this.model.truth.possible || []).length > 0;
    return [el('span', {}, el('i', { class: 'swatch sure' }), possible ? `${label}: sure` : label),
      possible ? el('span', {}, el('i', { class: 'swatch possible' }), 'possible') : ''];
  }

  draw_labels() {
    const { model, state } = this;
    const shown = [['normaliser', model.normaliser], ['score', model.score], ['scale', model.scale],
      ['structure', model.structure]];
    if (model.maps.length) {
      shown.push([model.layers.label, model.layers.names[state.layer]],
        [model.heads.label, state.head === -1 ? 'all' : model.heads.names[state.head]]);
    }
    this.labels.replaceChildren(...shown.filter(([, value]) => value).map(([name, value]) =>
      el('div', { 'data-label': name }, el('dt', {}, name), el('dd', {}, value))));
  }

  // How often the largest weight of a row lies on the truth.
  hits() {
    const { model } = this, map = this.map;
    let rows = 0, hits = 0;
    const wanted = new Set();
    if (model.truth_dense) {
      model.queries.forEach((_, q) => { if (model.truth_dense.row(q).some(([, w]) => w > 0)) wanted.add(q); });
    } else {
      for (const [query] of [...(model.truth?.sure || []), ...(model.truth?.possible || [])]) wanted.add(query);
    }
    for (const query of wanted) {
      let best = null;
      for (const [key, weight] of map.row(query)) if (best === null || weight > best[1]) best = [key, weight];
      if (best === null) continue;
      ++rows;
      if (model.wanted(query, best[0])) ++hits;
    }
    return { rows, hits };
  }
  draw_verdict() {
    this.verdict.textContent = '';
    if (!this.model.has_truth || this.state.head === -1 || this.model.queries.length > 20000) return;
    const { rows, hits } = this.hits();
    if (rows === 0) return;
    this.verdict.textContent = rows === 1
      ? `The largest weight is ${hits ? '' : 'not '}on the truth.`
      : `The largest weight is on the truth for ${hits} of ${count(rows, this.model.query_label)}.`;
  }

  draw_tables() {
    const tables = (this.model.tables || []).filter((t) => (t.query ?? -1) === -1 || t.query === this.state.query);
    // The title stands above the table, not in it: a narrow table would break it into many lines.
    this.tables.replaceChildren(...tables.map((t) => {
      const title = unique('table');
      return el('div', { class: 'scroll' }, t.title ? el('p', { class: 'table-title', id: title }, t.title) : '',
        el('table', t.title ? { 'aria-labelledby': title } : {},
          el('thead', {}, el('tr', {}, t.columns.map((c) => el('th', { scope: 'col' }, c)))),
          el('tbody', {}, t.rows.map((row) => el('tr', {}, row.map((cell, i) => i === 0
            ? el('th', { scope: 'row' }, cell_text(cell)) : el('td', {}, cell_text(cell))))))));
    }));
  }

  describe(query, key, weight) {
    const { model } = this;
    const truth = model.truth_at(query, key);
    const said = typeof truth === 'number' ? ` · ${model.truth.label || 'truth'} ${number(truth)}`
      : truth ? ` · ${model.truth.label || 'truth'}: ${truth}` : '';
    return `${this.name(model.queries, query, model.query_label)} → ${this.name(model.keys, key, model.key_label)}: ${number(weight)}${said}`;
  }
  name(items, i, label) {
    return items[i]?.text ? `“${items[i].text}”` : `${label} ${i + 1}`;
  }
  say(text) {
    this.readout.textContent = text;
  }
  show_tip(event, text) {
    this.say(text);
    this.tip.textContent = text;
    this.tip.hidden = false;
    const box = this.figure.getBoundingClientRect();
    const x = clamp(event.clientX - box.left + 14, 4, Math.max(4, box.width - this.tip.offsetWidth - 4));
    this.tip.style.left = `${x}px`;
    this.tip.style.top = `${event.clientY - box.top + 18}px`;
  }
  hide_tip() {
    this.tip.hidden = true;
  }

  tools() {
    const name = (this.model.system || 'explanation') + '-' + this.model.view;
    this.details = el('details', { ontoggle: () => { if (this.details.open) this.fill_details(); } },
      el('summary', {}, 'Data table'), this.detail_body = el('div', { class: 'scroll' }));
    return el('div', { class: 'tools', 'data-export': 'no' }, this.details, el('div', { class: 'buttons' },
      button('SVG', `Download “${this.model.title}” as SVG`, () => this.whole(() =>
        save(new Blob([figure_svg(this.picture)], { type: 'image/svg+xml' }), `${name}.svg`))),
      button('PNG', `Download “${this.model.title}” as PNG`, () => this.whole(async () =>
        save(await figure_png(this.picture), `${name}.png`)))));
  }

  // What the picture shows, in words: the weights that are not zero, largest first within each query.
  weight_rows() {
    const { model } = this, rows = [];
    let total = 0;
    for (const { head, map } of this.chosen()) {
      for (let query = 0; query < model.queries.length; ++query) {
        const row = map.row(query).filter(([key, weight]) => weight !== 0 || model.wanted(query, key)).sort((a, b) => b[1] - a[1]);
        total += row.length;
        for (const [key, weight] of row) {
          if (rows.length >= MOST_TABLE_ROWS) break;
          const truth = model.truth_at(query, key);
          rows.push([model.heads.names[head], model.queries[query].text || String(query), model.keys[key].text || String(key),
            number(weight), ...(model.has_truth ? [truth === null ? '' : typeof truth === 'number' ? number(truth) : truth] : [])]);
        }
      }
    }
    return { columns: [model.heads.label, model.query_label, model.key_label, 'weight', ...(model.has_truth ? ['truth'] : [])], rows, total };
  }
  fill_details() {
    const given = this.view.rows?.(this) || (this.model.maps.length ? this.weight_rows() : { columns: [], rows: [], total: 0 });
    const plots = this.plots.map((plot) => ({ title: plot.plot.title || plot.plot.y_label, columns: ['curve', 'name', plot.plot.x_label, plot.plot.y_label, 'upper'], rows: plot.rows().slice(0, MOST_TABLE_ROWS), total: plot.rows().length }));
    const shown = [given, ...plots].filter((t) => t.rows.length);
    this.detail_body.replaceChildren(...shown.flatMap((t) => [
      el('table', {}, el('caption', {}, t.title || this.model.title),
        el('thead', {}, el('tr', {}, t.columns.map((c) => el('th', { scope: 'col' }, c)))),
        el('tbody', {}, t.rows.map((row) => el('tr', {}, row.map((cell) => el('td', {}, cell_text(cell))))))),
      t.total > t.rows.length ? el('p', {}, `The first ${t.rows.length} of ${count(t.total, 'row')}.`) : '']));
  }
}

