// Elements and numbers. Text only ever enters the page as text nodes, so nothing a file says can become markup.

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || (value === false && !name.startsWith('aria-'))) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') Object.assign(element.style, value);
    else element.setAttribute(name, value === true && !name.startsWith('aria-') ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function el(tag, attributes, ...children) {
  return build(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return build(document.createElementNS(SVG_NAMESPACE, tag), attributes, children);
}

// Three decimals for a weight, about three digits for anything larger; an exact zero is '0' and nothing else is.
export function number(value) {
  if (value === 0) return '0';
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-3 ? value.toExponential(2)
    : size < 0.01 ? value.toFixed(4) : size < 1 ? value.toFixed(3)
      : size >= 100 ? value.toFixed(size >= 10000 ? 0 : 1) : value.toPrecision(3);
  return text.replace('-', '−').replace('e+', 'e');
}

// The same where there is little room: what is nearly nothing is no power of ten.
export function short_number(value) {
  if (value === 0 || Math.abs(value) >= 1e-3) return number(value);
  return value < 0 ? '>−0.001' : '<0.001';
}

// The same without trailing zeros, for settings.
export function plain(value) {
  return String(Number(value.toPrecision(3))).replace('-', '−');
}

export function count(n, singular) {
  const plural = singular.replace(/([^aeiou])y$/, '$1ie') + 's';
  return `${n.toLocaleString('en')} ${n === 1 ? singular : plural}`;
}

export function shorten(text, length) {
  const characters = [...text];
  return characters.length <= length ? text : characters.slice(0, length - 1).join('') + '…';
}

// A cell of a table: a word longer than a column is cut short, and a minus is a minus. What is rounded to zero has no sign.
const LONGEST_WORD = 32;
export function cell_text(value) {
  const cell = String(value);
  if (/^[-−][\d.]+([eE][-+]?\d+)?$/.test(cell)) return /[1-9]/.test(cell) ? cell.replaceAll('-', '−') : cell.slice(1);
  return cell.replace(/\S+/g, (word) => shorten(word, LONGEST_WORD));
}

// Names that begin alike often differ at their end: both are kept.
export function shorten_middle(text, length) {
  const characters = [...text], tail = Math.floor(length / 3);
  return characters.length <= length ? text : `${characters.slice(0, length - 1 - tail).join('')}…${characters.slice(-tail).join('')}`;
}

// So many letters of it as have room in that font.
export function shorten_to(text, room, font) {
  const ruler = document.createElement('canvas').getContext('2d');
  ruler.font = font;
  let letters = [...text].length;
  while (letters > 1 && ruler.measureText(shorten(text, letters)).width > room) --letters;
  return shorten(text, letters);
}

let identifiers = 0;
export function unique(prefix) {
  return `${prefix}-${++identifiers}`;
}

export function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

// The largest of any number of values: Math.max(...values) overflows the stack at some hundred thousand.
export function largest(values, least = 0) {
  return values.reduce((top, value) => Math.max(top, value), least);
}

// Arrow keys move the focus among `items`, so a figure is one stop of the Tab key however many items it has. May be called
// again when `items` has grown.
export function roving(items, horizontal = true) {
  items.forEach((item, i) => {
    if (item.hasAttribute('tabindex')) return;
    item.setAttribute('tabindex', i === 0 ? '0' : '-1');
    item.addEventListener('keydown', (event) => {
      const steps = { ArrowDown: 1, ArrowUp: -1, Home: -i, End: items.length - 1 - i };
      if (horizontal) Object.assign(steps, { ArrowRight: 1, ArrowLeft: -1 });
      const step = steps[event.key];
      const next = items[i + (step ?? 0)];
      if (step === undefined || !next) return;
      event.preventDefault();
      item.setAttribute('tabindex', '-1');
      next.setAttribute('tabindex', '0');
      next.focus();
    });
  });
}
