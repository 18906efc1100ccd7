// The beam tree: time runs to the right, the best hypothesis is bold, pruned branches are faint. Where greedy search leaves the
// best path, its own has another colour.

import { picker } from '../core/controls.js';
import { clamp, count, el, largest, number, shorten_to, svg } from '../core/dom.js';

// Leaves take one row each from top to bottom; a parent stands beside its first child, so that the path which is best at every step
// is a straight line.
function arrange(tree) {
  const children = tree.map(() => []), depth = [], y = [];
  tree.forEach((node, i) => {
    if (node.parent >= 0) children[node.parent].push(i);
    depth[i] = node.parent < 0 ? 0 : depth[node.parent] + 1;
  });
  let rows = 0;
  const place = (root) => {
    // An explicit stack: a long hypothesis must not overflow the call stack.
    const stack = [[root, 0]];
    while (stack.length) {
      const top = stack[stack.length - 1], [node, next] = top;
      if (next < children[node].length) {
        top[1] += 1;
        stack.push([children[node][next], 0]);
        continue;
      }
      const below = children[node];
      y[node] = below.length ? y[below[0]] : rows++;
      stack.pop();
    }
  };
  tree.forEach((node, i) => { if (node.parent < 0) place(i); });
  return { depth, y, rows };
}

// Without what was pruned: a hypothesis says how many of its continuations were.
function kept(tree) {
  const place = [], out = [];
  tree.forEach((node, i) => {
    const above = node.parent < 0 ? -1 : place[node.parent];
    if (node.state === 'pruned' || above === undefined) {
      if (node.state === 'pruned' && above >= 0) out[above].pruned += 1;
      return;
    }
    place[i] = out.length;
    out.push({ ...node, parent: above, pruned: 0 });
  });
  return out;
}

function hypothesis(tree, i) {
  const words = [];
  for (let node = i; node >= 0; node = tree[node].parent) words.unshift(tree[node].text);
  return words.join(' ');
}

// A node has room for a few digits; the words read aloud have all of them.
function score_text(score) {
  const digits = Math.abs(score) < 100 ? 2 : 0;
  return Math.abs(score) >= 1e5 ? number(score) : score.toFixed(digits).replace('-', '−');
}

const STATES = { live: 'kept', pruned: 'pruned', finished: 'finished', best: 'best', greedy: 'taken by greedy search' };

const NARROWEST = 62, WIDEST = 118;  // px of a column: a short word, and a long one
const NODE_FONT = 13.5, INSET = 8;  // px, of a node's word and before it
const SMALLEST = 0.85;  // of a word's own size: what can still be read

export const tree_view = {
  picks: [],
  state: () => ({ pruned: false }),
  controls(frame) {
    if (!frame.model.tree.some((node) => node.state === 'pruned')) return [];
    return [picker('pruned branches', ['folded', 'shown'], 0, (i) => frame.set({ pruned: i === 1 }))];
  },
  draw(frame, stage) {
    const tree = frame.state.pruned ? frame.model.tree : kept(frame.model.tree);
    const { depth, y, rows } = arrange(tree);
    const deepest = largest(depth), row = 46;
    const column = clamp(Math.floor((stage.clientWidth - 24) / (deepest + 1)), NARROWEST, WIDEST), gap = column > 90 ? 26 : 12;
    const width = (deepest + 1) * column + 20, height = rows * row + 20;
    const X = (i) => 14 + depth[i] * column, Y = (i) => 10 + (y[i] + 0.5) * row;
    const state = (i) => tree[i].state || 'live';
    // Ancestors of the best are drawn as best: the path is what one looks for.
    const best = new Set();
    tree.forEach((_, i) => { if (state(i) === 'best') for (let n = i; n >= 0; n = tree[n].parent) best.add(n); });
    const kind = (i) => best.has(i) ? 'best' : state(i);
    const goes_on = new Set(tree.map((node) => node.parent));
    const done = (i) => ['finished', 'best'].includes(state(i)) || (state(i) === 'greedy' && !goes_on.has(i));
    // A tree a little too wide is drawn a little smaller; one much too wide scrolls.
    const zoom = clamp((stage.clientWidth - 2) / width, SMALLEST, 1);
    const font = `${NODE_FONT}px ${getComputedStyle(stage).fontFamily}`;
    const root = svg('svg', { width: width * zoom, height: height * zoom, viewBox: `0 0 ${width} ${height}`, role: 'tree', 'aria-label': 'Beam search' });
    tree.forEach((node, i) => {
      if (node.parent < 0) return;
      const [x1, y1, x2, y2] = [X(node.parent) + column - gap, Y(node.parent), X(i), Y(i)];
      root.append(svg('path', { class: `branch ${kind(i)}`, d: `M${x1},${y1}C${(x1 + x2) / 2},${y1} ${(x1 + x2) / 2},${y2} ${x2},${y2}` }));
    });
    const nodes = tree.map((node, i) => {
      const words = `${hypothesis(tree, i)}: score ${number(node.score)}, ${STATES[state(i)]}${node.pruned ? `; ${count(node.pruned, 'continuation')} pruned` : ''}`;
      return svg('g', { class: `node ${kind(i)}`, role: 'treeitem', 'aria-level': depth[i] + 1, 'aria-selected': state(i) === 'best', 'aria-label': words, 'data-item': i,
        onpointermove: (event) => frame.show_tip(event, words), onpointerleave: () => frame.hide_tip(), onfocus: () => frame.say(words) },
      svg('rect', { x: X(i), y: Y(i) - 16, width: column - gap, height: 32, rx: 6 }),
      svg('text', { class: 'node-text', x: X(i) + INSET, y: Y(i) - 1 }, shorten_to(node.text, column - gap - INSET - 3, font)),
      svg('text', { class: 'node-score', x: X(i) + INSET, y: Y(i) + 12 }, score_text(node.score)),
      node.pruned ? svg('text', { class: 'node-folded', x: X(i) + column - gap - 2, y: Y(i) + 27, 'text-anchor': 'end' }, `+${node.pruned}`) : null,
      done(i) ? svg('text', { class: 'node-done', x: X(i) + column - gap + 1, y: Y(i) + 5 }, '✓') : null);
    });
    root.append(...nodes);
    this.walk(nodes, tree);
    stage.append(el('div', { class: 'scroll', style: { maxHeight: '760px' } }, root),
      el('div', { class: 'legend' }, el('span', {}, el('i', { class: 'swatch branch-best' }), 'best'),
        tree.some((node) => node.state === 'greedy') ? el('span', {}, el('i', { class: 'swatch branch-greedy' }), 'where greedy search goes') : '',
        el('span', {}, el('i', { class: 'swatch branch-live' }), 'kept'),
        el('span', {}, el('i', { class: 'swatch branch-pruned' }), 'pruned'), el('span', {}, '✓ finished'), frame.state.pruned ? '' : el('span', {}, '+n: continuations that were pruned')));
    // Open on the best path.
    const end = tree.findIndex((_, i) => state(i) === 'best');
    stage.firstChild.scrollTop = clamp(zoom * Y(Math.max(0, end)) - 380, 0, height);
  },
  // Left to the parent, right to the first child, up and down among the nodes as listed.
  walk(nodes, tree) {
    const children = tree.map(() => []);
    tree.forEach((node, i) => { if (node.parent >= 0) children[node.parent].push(i); });
    nodes.forEach((node, i) => {
      node.setAttribute('tabindex', i === 0 ? 0 : -1);
      node.addEventListener('keydown', (event) => {
        const siblings = tree[i].parent < 0 ? [i] : children[tree[i].parent];
        const at = siblings.indexOf(i);
        const next = { ArrowLeft: tree[i].parent, ArrowRight: children[i][0], ArrowDown: siblings[at + 1], ArrowUp: siblings[at - 1] }[event.key];
        if (next === undefined || next < 0) return;
        event.preventDefault();
        node.setAttribute('tabindex', -1);
        nodes[next].setAttribute('tabindex', 0);
        nodes[next].focus();
      });
    });
  },
  rows(frame) {
    const { tree } = frame.model;
    return { columns: ['hypothesis', 'score', 'state'], rows: tree.slice(0, 400).map((node, i) => [hypothesis(tree, i), number(node.score), STATES[node.state || 'live']]), total: tree.length };
  },
};
