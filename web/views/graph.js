// Who attends to whom on a graph. Where nodes have positions the whole graph is drawn; else the neighbourhood of one node,
// its neighbours in a ring by weight. Edge width is the weight, colour the head.

import { category } from '../core/colour.js';
import { clamp, el, largest, number, roving, shorten_middle, svg } from '../core/dom.js';
import { PlotFigure } from '../core/plot.js';

const MOST_NEIGHBOURS = 40;
const MOST_NODES = 400;

// [head, query, key, weight] of every edge to draw.
function edges_of(frame, queries) {
  return frame.chosen().flatMap(({ head, map }) => queries.flatMap((query) => map.row(query)
    .filter(([, weight]) => weight !== 0).map(([key, weight]) => ({ head, query, key, weight }))));
}

function ring(frame, width) {
  const { model } = frame, centre = frame.state.query, radius = clamp(width * 0.34, 92, 210), c = { x: width / 2, y: radius + 52 };
  const sums = new Map();
  for (const edge of edges_of(frame, [centre])) sums.set(edge.key, (sums.get(edge.key) || 0) + Math.abs(edge.weight));
  const all = [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([key]) => key);
  const others = all.filter((key) => key !== centre).slice(0, MOST_NEIGHBOURS);
  const places = new Map([[centre, c]]);
  others.forEach((key, i) => {
    // No neighbour straight above: the loop of the node on itself is there.
    const angle = -Math.PI / 2 + 2 * Math.PI * (i + 0.5) / others.length;
    places.set(key, { x: c.x + radius * Math.cos(angle), y: c.y + radius * Math.sin(angle) });
  });
  part(places, (key) => node_box(model.keys[key].text || String(key), width), centre);
  const heights = [...places].map(([key, at]) => [at.y, node_box(model.keys[key].text || String(key), width).tall]);
  const top = Math.min(0, ...heights.map(([y, tall]) => y - tall - 4)), low = Math.max(2 * radius + 104, ...heights.map(([y, tall]) => y + tall + 4));
  for (const at of places.values()) at.y -= top;
  return { places, height: low - top, queries: [centre], left_out: all.length - others.length - (sums.has(centre) ? 1 : 0) };
}

// Names that lie on each other, as on a phone, move up and down until they do not; the one in the middle stays.
const APART = 3, MOST_MOVES = 200;
function part(places, box_of, fixed) {
  const nodes = [...places].map(([key, at]) => ({ at, key, box: box_of(key) }));
  for (let moves = 0, moved = true; moved && moves < MOST_MOVES; ++moves) {
    moved = false;
    nodes.forEach((a, i) => nodes.slice(i + 1).forEach((b) => {
      const [upper, lower] = a.at.y <= b.at.y ? [a, b] : [b, a];
      const over = a.box.tall + b.box.tall + APART - (lower.at.y - upper.at.y);
      if (Math.abs(a.at.x - b.at.x) >= a.box.half + b.box.half + APART || over <= 0.01) return;
      moved = true;
      const free = [upper, lower].filter((node) => node.key !== fixed).length;
      if (upper.key !== fixed) upper.at.y -= over / free;
      if (lower.key !== fixed) lower.at.y += over / free;
    }));
  }
}

function given(frame, width) {
  const { model } = frame, nodes = model.keys.slice(0, MOST_NODES);
  const xs = nodes.map((n) => n.position[0]), ys = nodes.map((n) => n.position[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const height = clamp(width * ((y1 - y0) / (x1 - x0 || 1)), 180, 460) + 90;
  const places = new Map(nodes.map((n, i) => [i, { x: 66 + (width - 132) * (n.position[0] - x0) / (x1 - x0 || 1),
    y: 44 + (height - 88) * (n.position[1] - y0) / (y1 - y0 || 1) }]));
  return { places, height, queries: model.queries.map((_, i) => i).slice(0, MOST_NODES), left_out: 0 };
}

// The name of a node: what stands after the dot, its class, has a line of its own.
function name_lines(text, width) {
  return text.split(' · ').map((part) => shorten_middle(part, width < 500 ? 11 : 20));
}

// Half of the width and of the height of a node.
function node_box(text, width) {
  const lines = name_lines(text, width);
  return { half: Math.max(16, largest(lines.map((line) => [...line].length)) * 3.9 + 9), tall: 7.5 * lines.length + 6.5 };
}

function edge_path(from, to, lane, lanes) {
  const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
  if (length === 1) {  // a loop on the node itself
    const size = 26 + 7 * lane;
    return `M${from.x - 8},${from.y - 10}C${from.x - size},${from.y - 2 * size} ${from.x + size},${from.y - 2 * size} ${from.x + 8},${from.y - 10}`;
  }
  const shift = (lane - (lanes - 1) / 2) * Math.min(14, 70 / lanes) * 2;
  const mx = (from.x + to.x) / 2 - dy / length * shift, my = (from.y + to.y) / 2 + dx / length * shift;
  return `M${from.x},${from.y}Q${mx},${my} ${to.x},${to.y}`;
}

// Entropy of each query's weights beside the entropy of looking at all its neighbours alike.
function entropy_plot(frame) {
  const { model } = frame, found = [], uniform = [];
  for (const { map } of frame.chosen()) {
    model.queries.forEach((_, query) => {
      const row = map.row(query).filter(([, w]) => w > 0 || !map.dense);
      if (row.length < 2) return;
      const sum = row.reduce((total, [, w]) => total + w, 0);
      if (!(sum > 0)) return;
      found.push(row.reduce((total, [, w]) => (w > 0 ? total - w / sum * Math.log(w / sum) : total), 0));
      uniform.push(Math.log(row.length));
    });
  }
  if (found.length < 8) return null;
  const top = largest(uniform, largest(found)) * 1.0001, bins = 16;
  const histogram = (values) => {
    const counts = new Array(bins).fill(0);
    for (const value of values) counts[Math.min(bins - 1, Math.floor(value / top * bins))] += 1;
    return counts;
  };
  const x = Array.from({ length: bins }, (_, i) => (i + 0.5) * top / bins);
  return { title: 'How undecided each node is', x_label: 'entropy of its weights, nats',
    y_label: frame.chosen().length > 1 ? 'nodes × heads' : 'nodes',
    curves: [{ kind: 'bars', label: 'attention', x, y: histogram(found) }, { kind: 'bars', label: 'uniform over the same neighbours', x, y: histogram(uniform) }] };
}

export const graph_view = {
  all_heads: true,
  picks: ['layer', 'head'],
  controls(frame) {
    const { model } = frame;
    if (this.placed(model) || model.queries.length < 2) return [];
    const list = el('select', { onchange: () => frame.set({ query: Number(list.value) }) },
      model.queries.slice(0, 2000).map((q, i) => el('option', { value: i, selected: i === frame.state.query }, q.text || `${model.query_label} ${i + 1}`)));
    return [el('label', { class: 'picker' }, el('span', {}, model.query_label), list)];
  },
  placed: (model) => model.keys.length > 0 && model.keys.every((item) => item.position?.length === 2),
  draw(frame, stage) {
    const { model } = frame, width = clamp(stage.clientWidth, 280, 760), whole = this.placed(model);
    const { places, height, queries, left_out } = whole ? given(frame, width) : ring(frame, width);
    const edges = edges_of(frame, queries).filter((e) => places.has(e.key) && places.has(e.query));
    const limit = largest(edges.map((e) => Math.abs(e.weight)), 1e-12), lanes = frame.chosen().length;
    const root = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Graph' });
    const shown = edges.map((e) => {
      const t = Math.abs(e.weight) / limit, lane = lanes > 1 ? e.head : 0;
      return svg('path', { class: 'edge', d: edge_path(places.get(e.key), places.get(e.query), lane, lanes), stroke: category(frame.state.head === -1 ? e.head : 0),
        'stroke-width': 0.7 + 7 * t, 'stroke-opacity': 0.3 + 0.6 * t, 'stroke-dasharray': e.weight < 0 ? '5 4' : 'none', 'data-key': e.key, 'data-query': e.query,
        onpointermove: (event) => frame.show_tip(event, this.edge_words(frame, e)), onpointerleave: () => frame.hide_tip() });
    });
    root.append(svg('g', {}, shown));
    if (whole && edges.length <= 24) {
      root.append(...edges.map((e) => {
        const [a, b] = [places.get(e.key), places.get(e.query)];
        return svg('text', { class: 'edge-number', x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 - 6, 'text-anchor': 'middle' }, number(e.weight));
      }));
    }
    const nodes = [...places].map(([key, at]) => {
      const lines = name_lines(model.keys[key].text || String(key), width), centre = !whole && key === frame.state.query;
      const { half, tall } = node_box(model.keys[key].text || String(key), width);
      const wanted = queries.some((query) => model.wanted(query, key));
      return svg('g', { class: `node ${centre ? 'best' : 'live'}${wanted ? ' wanted' : ''}`, 'data-item': key, role: 'button', 'aria-label': this.words(frame, key, edges),
        onclick: () => { if (!whole && key < model.queries.length) frame.pick({ query: key }); },
        onfocus: () => frame.say(this.words(frame, key, edges)),
        onkeydown: (event) => { if (event.key === 'Enter' && !whole && key < model.queries.length) frame.pick({ query: key }); } },
      svg('title', {}, model.keys[key].text || String(key)),
      svg('rect', { x: at.x - half, y: at.y - tall, width: 2 * half, height: 2 * tall, rx: 14 }),
      lines.map((line, i) => svg('text', { class: 'node-text', x: at.x, y: at.y + 4.5 + 15 * i - 7.5 * (lines.length - 1), 'text-anchor': 'middle' }, line)));
    });
    roving(nodes);
    root.append(...nodes);
    stage.append(root, el('div', { class: 'legend' },
      frame.state.head === -1 ? model.heads.names.map((name, i) => el('span', {}, el('i', { class: 'swatch', style: { background: category(i) } }), `${model.heads.label} ${name}`)) : '',
      el('span', {}, `edge width: ${/^none: /.test(model.normaliser) ? model.normaliser.slice(6) : 'weight'}, widest ${number(limit)}; exact zeros have no edge`),
      left_out > 0 ? el('span', {}, `${left_out} further neighbours are in the data table`) : '',
      ...(model.has_truth ? frame.truth_keys() : [])));
    const entropy = whole ? null : entropy_plot(frame);
    if (entropy) {
      const plot = new PlotFigure(entropy);
      stage.append(plot.host);
      plot.draw();
    }
  },
  edge_words(frame, e) {
    const { model } = frame, head = model.heads.names.length > 1 ? `${model.heads.label} ${model.heads.names[e.head]}: ` : '';
    return head + frame.describe(e.query, e.key, e.weight);
  },
  words(frame, key, edges) {
    const to = edges.filter((e) => e.key === key).slice(0, 8).map((e) => this.edge_words(frame, e));
    return `${frame.name(frame.model.keys, key, frame.model.key_label)}${to.length ? '. ' + to.join('; ') : ''}`;
  },
};
