// Pickers, sliders, buttons: native inputs, so keyboards and screen readers know them already.

import { el, unique } from './dom.js';

// A few names become a row of radio buttons; many become a slider that shows the name.
const MOST_BUTTONS = 12;

export function radio_row(label, names, chosen, choose) {
  const group = unique('pick');
  return el('fieldset', { class: 'picker' }, el('legend', {}, label),
    el('div', { class: 'segments' }, names.map((name, i) => el('label', {},
      el('input', { type: 'radio', name: group, value: i, checked: i === chosen, onchange: () => choose(i) }),
      el('span', {}, name)))));
}

export function slider(label, names, chosen, choose) {
  const id = unique('slide');
  const shown = el('output', { for: id }, names[chosen]);
  const input = el('input', { id, type: 'range', min: 0, max: names.length - 1, step: 1, value: chosen,
    'aria-valuetext': names[chosen],
    oninput: () => {
      const i = Number(input.value);
      shown.textContent = names[i];
      input.setAttribute('aria-valuetext', names[i]);
      choose(i);
    } });
  const node = el('div', { class: 'picker slider' }, el('label', { for: id }, label), input, shown);
  node.set = (i) => {
    input.value = i;
    shown.textContent = names[i];
    input.setAttribute('aria-valuetext', names[i]);
  };
  return node;
}

export function picker(label, names, chosen, choose) {
  const letters = names.reduce((sum, name) => sum + name.length + 3, 0);
  return names.length <= MOST_BUTTONS && letters <= 90
    ? radio_row(label, names, chosen, choose) : slider(label, names, chosen, choose);
}

export function button(text, label, press) {
  return el('button', { type: 'button', 'aria-label': label, title: label, onclick: press }, text);
}

// A number one can read and move: value, its range and step.
export function dial(label, { minimum, maximum, step, value, format }, change) {
  const id = unique('dial');
  const shown = el('output', { for: id }, format(value));
  const input = el('input', { id, type: 'range', min: minimum, max: maximum, step, value,
    'aria-valuetext': format(value),
    oninput: () => {
      shown.textContent = format(Number(input.value));
      input.setAttribute('aria-valuetext', shown.textContent);
      change(Number(input.value));
    } });
  const node = el('div', { class: 'picker slider' }, el('label', { for: id }, label), input, shown);
  node.set = (next) => {
    input.value = next;
    shown.textContent = format(Number(next));
    input.setAttribute('aria-valuetext', shown.textContent);
  };
  return node;
}
