// Queries x keys as cells: canvas tiles under an SVG that carries labels, truth and the cursor. Smooth at a million cells.

import { button } from '../core/controls.js';
import { Scale } from '../core/colour.js';
import { clamp, count, el, number, shorten, svg } from '../core/dom.js';
import { Tiles } from '../core/tiles.js';

const READABLE = 13;      // px a cell must have before each row and column is named
const LARGEST_CELL = 46;  // px; small matrices are not blown up further
const FONT = '12.5px system-ui, sans-serif';

function text_width(items) {
  const context = document.createElement('canvas').getContext('2d');
  context.font = FONT;
  return Math.max(0, ...items.slice(0, 400).map((item) => context.measureText(shorten(item.text, 18)).width));
}

// The smallest of 1, 2, 5, 10, 20, ... that is not below `least`.
function round_step(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, least)));
  return [1, 2, 5, 10].find((k) => k * power >= least) * power;
}

class MatrixPanel {
  constructor(frame, view, map, scale, title) {
    Object.assign(this, { frame, view, map, scale, tiles: new Tiles(map, scale) });
    this.canvas = el('canvas', { 'aria-hidden': 'true' });
    this.overlay = svg('svg', { tabindex: 0, role: 'application', 'aria-roledescription': 'matrix',
      'aria-label': `${title}: ${count(map.rows, 'row')} by ${count(map.width, 'column')}. Arrow keys read the cells, plus and minus zoom.` });
    this.host = el('div', { class: 'matrix-panel' }, title && view.panels_wanted > 1 ? el('p', { class: 'panel-title' }, title) : '',
      el('div', { class: 'matrix-box' }, this.canvas, this.overlay));
    this.listen();
  }
  listen() {
    const { overlay, view, frame } = this;
    overlay.addEventListener('pointermove', (event) => this.point(event));
    overlay.addEventListener('pointerleave', () => { view.pointers.clear(); frame.hide_tip(); view.cursor = null; view.paint(); });
    overlay.addEventListener('pointerdown', (event) => { view.pointers.set(event.pointerId, event); overlay.focus({ preventScroll: true }); });
    overlay.addEventListener('pointerup', (event) => view.pointers.delete(event.pointerId));
    overlay.addEventListener('pointercancel', (event) => view.pointers.delete(event.pointerId));
    // A page must scroll past a figure: the wheel zooms with Ctrl, or once the matrix has the focus.
    overlay.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && document.activeElement !== overlay) return;
      event.preventDefault();
      const box = overlay.getBoundingClientRect();
      view.zoom(Math.exp(-event.deltaY * 0.0018), event.clientX - box.left - view.left, event.clientY - box.top - view.top);
    }, { passive: false });
    overlay.addEventListener('keydown', (event) => this.key(event));
  }
  point(event) {
    const { view, frame } = this;
    const held = view.pointers.get(event.pointerId);
    if (held && view.pointers.size === 2) {
      const other = [...view.pointers.values()].find((p) => p.pointerId !== event.pointerId);
      const span = (a, b) => Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY) || 1;
      const box = this.overlay.getBoundingClientRect();
      view.zoom(span(event, other) / span(held, other), (event.clientX + other.clientX) / 2 - box.left - view.left,
        (event.clientY + other.clientY) / 2 - box.top - view.top);
    } else if (held && view.zoomed) {
      view.pan(held.clientX - event.clientX, held.clientY - event.clientY);
    }
    if (held) view.pointers.set(event.pointerId, event);
    const box = this.overlay.getBoundingClientRect();
    const key = Math.floor(view.camera.x + (event.clientX - box.left - view.left) / view.camera.cell);
    const query = Math.floor(view.camera.y + (event.clientY - box.top - view.top) / view.camera.cell);
    const inside = query >= 0 && key >= 0 && query < this.map.rows && key < this.map.width
      && event.clientX - box.left >= view.left && event.clientY - box.top >= view.top;
    view.cursor = inside ? { query, key } : null;
    if (inside) frame.show_tip(event, frame.describe(query, key, frame.map.at(query, key)));
    else frame.hide_tip();
    view.paint();
  }
  key(event) {
    const { view, map, frame } = this;
    const moves = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0],
      PageDown: [10, 0], PageUp: [-10, 0], Home: [0, -Infinity], End: [0, Infinity] };
    if (event.key === '+' || event.key === '=') view.zoom(1.4);
    else if (event.key === '-') view.zoom(1 / 1.4);
    else if (event.key === '0') view.fit();
    else if (moves[event.key]) {
      const [down, right] = moves[event.key];
      const from = view.cursor || { query: -Math.sign(down), key: -Math.sign(right) };
      view.cursor = { query: clamp(from.query + down, 0, map.rows - 1), key: clamp(from.key + right, 0, map.width - 1) };
      view.reveal(view.cursor);
      frame.say(frame.describe(view.cursor.query, view.cursor.key, frame.map.at(view.cursor.query, view.cursor.key)));
      view.paint();
    } else return;
    event.preventDefault();
  }
  paint(width, height) {
    const { view, canvas, overlay } = this, ratio = devicePixelRatio || 1;
    const inner_width = width - view.left, inner_height = height - view.top;
    canvas.width = Math.round(inner_width * ratio);
    canvas.height = Math.round(inner_height * ratio);
    Object.assign(canvas.style, { left: `${view.left}px`, top: `${view.top}px`, width: `${inner_width}px`, height: `${inner_height}px` });
    this.tiles.paint(canvas.getContext('2d'), { ...view.camera, cell: view.camera.cell * ratio }, canvas.width, canvas.height);
    overlay.setAttribute('width', width);
    overlay.setAttribute('height', height);
    overlay.style.touchAction = view.zoomed ? 'none' : 'pan-x pan-y';
    overlay.replaceChildren(...this.marks(inner_width, inner_height));
  }
  marks(inner_width, inner_height) {
    const { view, map, frame } = this, { camera, left, top } = view, { model } = frame;
    const X = (key) => left + (key - camera.x) * camera.cell, Y = (query) => top + (query - camera.y) * camera.cell;
    const out = [];
    const range = (origin, length, size) => [Math.max(0, Math.floor(origin)), Math.min(size, Math.ceil(origin + length / camera.cell))];
    const [k0, k1] = range(camera.x, inner_width, map.width), [q0, q1] = range(camera.y, inner_height, map.rows);
    const clip = { x: X(Math.max(0, camera.x)), y: Y(Math.max(0, camera.y)),
      width: Math.min(inner_width, (k1 - Math.max(0, camera.x)) * camera.cell), height: Math.min(inner_height, (q1 - Math.max(0, camera.y)) * camera.cell) };
    out.push(svg('rect', { class: 'matrix-edge', ...clip }));
    if (camera.cell >= 16) {
      for (let k = k0 + 1; k < k1; ++k) if (X(k) > left) out.push(svg('line', { class: 'cell-line', x1: X(k), x2: X(k), y1: clip.y, y2: clip.y + clip.height }));
      for (let q = q0 + 1; q < q1; ++q) if (Y(q) > top) out.push(svg('line', { class: 'cell-line', y1: Y(q), y2: Y(q), x1: clip.x, x2: clip.x + clip.width }));
    }
    const named = (i, text) => camera.cell >= READABLE ? shorten(text, 18) : String(i);
    const every = camera.cell >= READABLE ? 1 : round_step(34 / camera.cell);
    const hot = view.cursor;
    for (let q = Math.ceil(q0 / every) * every; q < q1; q += every) {
      if (Y(q + 0.5) < top) continue;
      out.push(svg('text', { class: hot?.query === q ? 'row-name hot' : 'row-name', x: left - 8, y: Y(q + 0.5) + 4, 'text-anchor': 'end' }, named(q, model.queries[q].text)));
    }
    for (let k = Math.ceil(k0 / every) * every; k < k1; k += every) {
      if (X(k + 0.5) < left) continue;
      out.push(svg('text', { class: hot?.key === k ? 'row-name hot' : 'row-name', transform: `translate(${X(k + 0.5) + (view.angle ? 4 : 0)} ${top - 8}) rotate(${view.angle})`,
        'text-anchor': view.angle ? 'start' : 'middle' }, named(k, model.keys[k].text)));
    }
    out.push(...this.truth_marks(X, Y, q0, q1, k0, k1));
    if (hot && hot.query >= q0 && hot.query < q1 && hot.key >= k0 && hot.key < k1) {
      const size = Math.max(camera.cell, 5);
      out.push(svg('rect', { class: 'cursor', x: X(hot.key + 0.5) - size / 2, y: Y(hot.query + 0.5) - size / 2, width: size, height: size }));
    }
    return out;
  }
  // Sure links filled, possible ones outlined.
  truth_marks(X, Y, q0, q1, k0, k1) {
    const { frame, view, map } = this, { cell } = view.camera, out = [];
    if (frame.model.truth_dense || frame.model.truths.size > 20000) return out;
    for (const [place, kind] of frame.model.truths) {
      const query = Math.floor(place / map.width), key = place % map.width;
      if (query < q0 || query >= q1 || key < k0 || key >= k1) continue;
      const inset = cell > 12 ? 2.5 : 0.5, size = Math.max(2, cell - 2 * inset);
      const box = { x: X(key) + inset, y: Y(query) + inset, width: size, height: size, rx: Math.min(3, cell / 6) };
      if (kind === 'sure' && cell >= 12) out.push(svg('rect', { class: 'truth-halo', ...box }));
      out.push(svg('rect', { class: `truth ${kind}`, ...box }));
      if (kind === 'sure' && cell >= 12) out.push(svg('circle', { class: 'truth dot', cx: X(key + 0.5), cy: Y(query + 0.5), r: Math.min(4, cell / 6) }));
    }
    return out;
  }
}

class MatrixDrawing {
  constructor(frame, stage) {
    const { model } = frame;
    Object.assign(this, { frame, stage, cursor: null, pointers: new Map() });
    this.panels_wanted = model.truth_dense ? 2 : 1;
    this.panels = [new MatrixPanel(frame, this, frame.map, frame.scale, model.truth_dense ? 'attention' : model.title)];
    if (model.truth_dense) {
      this.panels.push(new MatrixPanel(frame, this, model.truth_dense, new Scale(model.truth_dense.limit), model.truth.label || 'truth'));
    }
    const columns_high = text_width(model.keys);
    this.left = Math.ceil(Math.min(130, Math.max(34, text_width(model.queries)))) + 14;
    this.host = el('div', { class: 'matrix-panels' }, this.panels.map((panel) => panel.host));
    stage.append(this.axis_note(), this.host, this.buttons());
    const free = stage.clientWidth, side_by_side = this.panels.length > 1 && free > 640;
    this.width = side_by_side ? Math.floor((free - 24) / 2) : free;
    const over = Math.max(30, Math.ceil(0.65 * text_width(model.keys.slice(-2))));  // how far names reach beyond the last column
    const fitting = Math.min((this.width - this.left - over) / model.keys.length, 560 / model.queries.length, LARGEST_CELL);
    const named = fitting >= READABLE;
    const upright = named && columns_high < fitting - 4;
    this.angle = upright ? 0 : named ? -50 : 0;
    this.right = this.angle ? over : 2;
    this.top = named && !upright ? Math.ceil(columns_high * 0.77) + 22 : 30;
    if (!named) this.left = 22 + 8 * String(model.queries.length).length;
    this.fit();
    frame.point_at = (query) => {
      const [key] = frame.map.row(query).reduce((best, entry) => (entry[1] > best[1] ? entry : best), [0, -Infinity]);
      this.cursor = { query, key };
      this.paint();
    };
  }
  axis_note() {
    const { model } = this.frame;
    return el('p', { class: 'axis-note' }, `rows: ${model.query_label} · columns: ${model.key_label}`);
  }
  buttons() {
    return el('div', { class: 'zoom', role: 'group', 'aria-label': 'Zoom', 'data-export': 'no' },
      button('−', 'Zoom out', () => this.zoom(1 / 1.5)), button('+', 'Zoom in', () => this.zoom(1.5)),
      button('fit', 'Show the whole matrix', () => this.fit()));
  }
  get area() {
    return [this.width - this.left - this.right, Math.min(560, this.whole * this.frame.model.queries.length)];
  }
  fit() {
    const { model } = this.frame;
    const wide = this.width - this.left - this.right;
    this.whole = Math.min(wide / model.keys.length, 560 / model.queries.length, LARGEST_CELL);
    // A few hundred rows of two columns would be hairlines: rows may scroll by panning instead.
    if (this.whole * model.queries.length >= 560 && wide / model.keys.length > 14) this.whole = Math.max(this.whole, 0.5);
    this.camera = { x: 0, y: 0, cell: this.whole };
    this.paint();
  }
  get zoomed() {
    return this.camera.cell > this.whole * 1.001;
  }
  zoom(factor, x, y) {
    const [wide, high] = this.area, { camera } = this;
    x ??= wide / 2;
    y ??= high / 2;
    const cell = clamp(camera.cell * factor, this.whole, Math.max(this.whole, 64));
    camera.x += x / camera.cell - x / cell;
    camera.y += y / camera.cell - y / cell;
    camera.cell = cell;
    this.pan(0, 0);
  }
  pan(dx, dy) {
    const [wide, high] = this.area, { camera, frame } = this;
    camera.x = clamp(camera.x + dx / camera.cell, 0, Math.max(0, frame.model.keys.length - wide / camera.cell));
    camera.y = clamp(camera.y + dy / camera.cell, 0, Math.max(0, frame.model.queries.length - high / camera.cell));
    this.paint();
  }
  reveal({ query, key }) {
    const [wide, high] = this.area, { camera } = this;
    camera.x = clamp(camera.x, key + 1 - wide / camera.cell, key);
    camera.y = clamp(camera.y, query + 1 - high / camera.cell, query);
    this.pan(0, 0);
  }
  paint() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => this.paint_now());
  }
  paint_now() {
    this.waiting = 0;
    const high = this.top + this.area[1] + 2;
    for (const panel of this.panels) {
      panel.host.lastChild.style.height = `${high}px`;
      panel.host.lastChild.style.width = `${this.width}px`;
      panel.paint(this.width, high);
    }
    if (high !== this.high) this.frame.cut();
    this.high = high;
  }
}

// Every layer and head at a glance, when there are several: a click chooses.
function overview(frame, stage) {
  const { model } = frame;
  if (frame.layers_slide || model.maps.length < 2 || model.maps.length > 144 || model.queries.length * model.keys.length > 40000) return;
  // With one head the layers stand side by side, each under its name.
  const one = model.heads.names.length === 1;
  const grid = el('div', { class: one ? 'overview one-head' : 'overview', role: 'group', 'aria-label': 'Every layer and head',
    style: one ? {} : { gridTemplateColumns: `auto repeat(${model.heads.names.length}, minmax(0, 1fr))` } });
  if (!one) grid.append(el('span', {}), ...model.heads.names.map((name) => el('span', { class: 'overview-name' }, name)));
  model.layers.names.forEach((layer_name, layer) => {
    if (!one) grid.append(el('span', { class: 'overview-name' }, layer_name));
    model.heads.names.forEach((head_name, head) => {
      if (!model.has(layer, head)) return grid.append(el('span', {}));
      const map = model.map(layer, head);
      const canvas = el('canvas', { width: map.width, height: map.rows });
      new Tiles(map, new Scale(map.limit, frame.state.curve)).paint(canvas.getContext('2d'), { x: 0, y: 0, cell: 1 }, map.width, map.rows);
      const chosen = layer === frame.state.layer && head === frame.state.head;
      grid.append(el('button', { type: 'button', 'aria-pressed': chosen, 'data-item': `${layer}-${head}`,
        'aria-label': `${model.layers.label} ${layer_name}, ${model.heads.label} ${head_name}, largest weight ${number(map.maximum)}`,
        onclick: () => frame.pick({ layer, head }) }, one ? el('span', { class: 'overview-name' }, layer_name) : '', canvas));
    });
  });
  stage.append(el('p', { class: 'axis-note' }, one ? `one for each choice of “${model.layers.label}”, each on its own colour scale`
    : `every ${model.layers.label} (rows) and ${model.heads.label} (columns), each on its own colour scale`), grid);
}

export const matrix_view = {
  coloured: true,
  draw(frame, stage) {
    frame.drawing = new MatrixDrawing(frame, stage);
    overview(frame, stage);
  },
};
