// Any drawn figure as one SVG file: what the browser laid out is walked and written down as shapes, text and images.

import { svg } from './dom.js';

const BASELINE = 0.35;  // below the middle of a line, of the size of its letters

const PAINT = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-opacity', 'stroke-dasharray', 'stroke-linecap',
  'stroke-linejoin', 'opacity', 'font-family', 'font-size', 'font-weight', 'font-style', 'text-anchor',
  'dominant-baseline', 'paint-order'];

function visible(style) {
  return style.display !== 'none' && style.visibility !== 'hidden' && style.opacity !== '0';
}

// A line that keeps its width however its picture is scaled: other programs scale it, so its width is divided before.
function keep_stroke(source, target, style) {
  const { a, b, c, d } = source.getScreenCTM(), scale = Math.sqrt(Math.abs(a * d - b * c)) || 1;
  const divided = (lengths) => lengths.replace(/[\d.]+/g, (length) => String(length / scale)).replaceAll('px', '');
  target.setAttribute('stroke-width', divided(style.strokeWidth));
  if (style.strokeDasharray !== 'none') target.setAttribute('stroke-dasharray', divided(style.strokeDasharray));
}

// The pixels of a canvas, large enough that no program needs to invent any between them.
const LARGEST_PICTURE = 2400;
function sharp_picture(canvas, box) {
  const times = Math.min(Math.ceil(2 * box.width / canvas.width), Math.floor(LARGEST_PICTURE / Math.max(canvas.width, canvas.height)));
  if (getComputedStyle(canvas).imageRendering !== 'pixelated' || times <= 1) return canvas.toDataURL();
  const large = document.createElement('canvas');
  large.width = canvas.width * times;
  large.height = canvas.height * times;
  const context = large.getContext('2d');
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  return large.toDataURL();
}

function paint_from(source, target) {
  const style = getComputedStyle(source);
  for (const property of PAINT) target.setAttribute(property, style.getPropertyValue(property));
  if (style.vectorEffect === 'non-scaling-stroke') keep_stroke(source, target, style);
  target.removeAttribute('class');
  target.removeAttribute('tabindex');
  [...source.children].forEach((child, i) => paint_from(child, target.children[i]));
}

// What a box shows of itself: its ground and border, a coloured left edge, its outline.
function box_shapes(style, box) {
  const shapes = [];
  const left = parseFloat(style.borderLeftWidth) || 0, outline = parseFloat(style.outlineWidth) || 0;
  const ground = ground_shape(style, box);
  if (ground) shapes.push(ground);
  if (left > 0 && !(parseFloat(style.borderTopWidth) > 0)) {
    shapes.push(svg('rect', { x: box.x, y: box.y, width: left, height: box.height, fill: style.borderLeftColor }));
  }
  if (outline > 0 && style.outlineStyle !== 'none') {
    const grow = parseFloat(style.outlineOffset) + outline / 2;
    shapes.push(svg('rect', { x: box.x - grow, y: box.y - grow, width: Math.max(0, box.width + 2 * grow), height: Math.max(0, box.height + 2 * grow),
      rx: parseFloat(style.borderRadius) || 0, fill: 'none', stroke: style.outlineColor, 'stroke-width': outline,
      'stroke-dasharray': style.outlineStyle === 'dashed' ? '4 3' : 'none' }));
  }
  return shapes;
}

function ground_shape(style, box) {
  const filled = style.backgroundColor !== 'rgba(0, 0, 0, 0)' && style.backgroundColor !== 'transparent';
  const width = parseFloat(style.borderTopWidth) || 0;
  const bordered = width > 0 && style.borderTopStyle !== 'none';
  if (!filled && !bordered) return null;
  return svg('rect', { x: box.x, y: box.y, width: box.width, height: box.height, rx: parseFloat(style.borderRadius) || 0,
    fill: filled ? style.backgroundColor : 'none', stroke: bordered ? style.borderTopColor : 'none',
    'stroke-width': width, 'stroke-dasharray': style.borderTopStyle === 'dashed' ? '4 3' : 'none' });
}

// The lines of a text node: one <text> for each line box.
function text_shapes(node, style, origin) {
  const shapes = [];
  const range = document.createRange();
  let start = 0, top = null;
  const flush = (end) => {
    const text = node.data.slice(start, end).trim();
    range.setStart(node, start);
    range.setEnd(node, end);
    const box = range.getBoundingClientRect();
    if (text && box.width) {
      // On its baseline, which every program knows.
      shapes.push(svg('text', { x: box.left - origin.left, y: box.top - origin.top + box.height / 2 + BASELINE * parseFloat(style.fontSize), fill: style.color, 'font-family': style.fontFamily, 'font-size': style.fontSize,
        'font-weight': style.fontWeight, 'font-style': style.fontStyle }, text));
    }
    start = end;
  };
  for (let i = 0; i < node.data.length; ++i) {
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    const box = range.getClientRects()[0];
    if (!box || !box.width) continue;
    if (top !== null && box.top > top + box.height / 2) flush(i);
    top = box.top;
  }
  flush(node.data.length);
  return shapes;
}

function walk(element, origin, out) {
  const style = getComputedStyle(element);
  if (!visible(style) || element.dataset.export === 'no') return;
  const rectangle = element.getBoundingClientRect();
  if (!rectangle.width || !rectangle.height) return;
  const box = { x: rectangle.left - origin.left, y: rectangle.top - origin.top, width: rectangle.width, height: rectangle.height };
  if (element.tagName.toLowerCase() === 'svg') {
    const copy = element.cloneNode(true);
    paint_from(element, copy);
    for (const [name, value] of Object.entries(box)) copy.setAttribute(name, value);
    out.append(copy);
    return;
  }
  if (element.tagName === 'CANVAS') {
    out.append(svg('image', { ...box, href: sharp_picture(element, box), preserveAspectRatio: 'none', style: { imageRendering: 'pixelated' } }));
    return;
  }
  out.append(...box_shapes(style, box));
  for (const child of element.childNodes) {
    if (child.nodeType === Node.ELEMENT_NODE) walk(child, origin, out);
    else if (child.nodeType === Node.TEXT_NODE && child.data.trim()) out.append(...text_shapes(child, style, origin));
  }
}

const MARGIN = 20;

export function figure_svg(element) {
  element.classList.add('exporting');  // controls make no room in a file
  const box = element.getBoundingClientRect(), origin = { left: box.left - MARGIN, top: box.top - MARGIN };
  const width = Math.ceil(box.width) + 2 * MARGIN, height = Math.ceil(box.height) + 2 * MARGIN;
  const out = svg('svg', { width, height, viewBox: `0 0 ${width} ${height}` });
  const page = getComputedStyle(element).backgroundColor;
  out.append(svg('rect', { width, height, fill: page }));
  walk(element, origin, out);
  element.classList.remove('exporting');
  return new XMLSerializer().serializeToString(out);
}

export async function figure_png(element, zoom = 2) {
  const source = figure_svg(element);
  const image = new Image();
  image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(source);
  await image.decode();
  const canvas = document.createElement('canvas');
  canvas.width = image.width * zoom;
  canvas.height = image.height * zoom;
  const context = canvas.getContext('2d');
  context.scale(zoom, zoom);
  context.drawImage(image, 0, 0);
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
}

export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
