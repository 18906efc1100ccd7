// Starts the page: the theme, each Explanation in its place, the demo.

import { theme } from './core/colour.js';
import { el } from './core/dom.js';
import { Frame } from './core/frame.js';
import { Pictures } from './core/pictures.js';
import { print_whole } from './core/print.js';
import { start_demo } from './demo/demo.js';
import { start_live } from './live/live.js';
import { bag_view } from './views/bag.js';
import { bipartite_view } from './views/bipartite.js';
import { curve_view } from './views/curve.js';
import { graph_view } from './views/graph.js';
import { image_view } from './views/image.js';
import { matrix_view } from './views/matrix.js';
import { memory_view } from './views/memory.js';
import { shuffle_view } from './views/shuffle.js';
import { text_view } from './views/text.js';
import { tree_view } from './views/tree.js';

const VIEWS = { bag: bag_view, bipartite: bipartite_view, curve: curve_view, graph: graph_view, image: image_view,
  matrix: matrix_view, memory: memory_view, shuffle: shuffle_view, text: text_view, tree: tree_view };
const VERSION = 1;

function announce_theme() {
  document.dispatchEvent(new Event('themechange'));
}

function theme_button() {
  const button = document.getElementById('theme');
  const label = () => button.setAttribute('aria-label', `Switch to the ${theme() === 'dark' ? 'light' : 'dark'} theme`);
  button.hidden = false;
  button.addEventListener('click', () => {
    document.documentElement.dataset.theme = theme() === 'dark' ? 'light' : 'dark';
    label();
    announce_theme();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { label(); announce_theme(); });
  label();
}

function draw_explanation(script) {
  const host = el('div', {});
  script.before(host);
  try {
    const explanation = JSON.parse(script.textContent);
    if (explanation.format !== 'fovea-explanation' || explanation.version !== VERSION) throw new Error(`version ${explanation.version}, expected ${VERSION}`);
    if (!VIEWS[explanation.view]) throw new Error(`unknown view ${explanation.view}`);
    new Frame(host, explanation, VIEWS[explanation.view]);
  } catch (error) {
    host.replaceWith(el('p', { class: 'broken', role: 'alert' }, `This picture cannot be drawn: ${error.message}.`));
  }
}

const parts = [...document.querySelectorAll('.pictures')].map((host) => new Pictures(host, draw_explanation));
let waiting = [...parts];

function draw_next() {
  waiting.shift().show(0);
  performance.mark('picture');
}

// One picture at a time, with room for the reader's scrolling and clicks between two.
function draw_waiting() {
  if (!waiting.length) {
    document.body.dataset.ready = 'yes';
    return;
  }
  draw_next();
  setTimeout(draw_waiting);
}

// An address within the page: what stands above it is drawn first, so that it does not move; what hides it opens.
function go_to_address() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  const is_above = (part) => part.panels[0].compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING;
  while (waiting.length && is_above(waiting[0])) draw_next();
  const part = parts.find(({ panels }) => panels.includes(target));
  if (part) {
    waiting = waiting.filter((other) => other !== part);
    part.show(part.panels.indexOf(target));
  }
  for (let fold = target.closest('details'); fold; fold = fold.parentElement.closest('details')) fold.open = true;
  target.scrollIntoView({ behavior: 'instant' });
}

// An equation that is wider than the page is set smaller, as far as it can be read; what is still too wide scrolls.
const SMALLEST_EQUATION = 0.68;
function fit_equations() {
  for (const box of document.querySelectorAll('.equation')) {
    box.style.fontSize = '';
    const style = getComputedStyle(box), room = box.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const widest = Math.max(...[...box.querySelectorAll('math')].map((math) => math.getBoundingClientRect().width));
    if (widest > room) box.style.fontSize = `${Math.max(SMALLEST_EQUATION, 0.98 * room / widest)}em`;
  }
}

theme_button();
fit_equations();
document.fonts.ready.then(fit_equations);
addEventListener('resize', fit_equations);
const demo_host = document.getElementById('demo');
if (demo_host) start_demo(demo_host);
const live_form = document.getElementById('live');
if (live_form) start_live(live_form, parts, draw_explanation);
go_to_address();
addEventListener('hashchange', go_to_address);
print_whole(parts, announce_theme);
draw_waiting();
