// The live page: what is typed goes to the server, and the answer and the pictures follow.

import { el, number } from '../core/dom.js';
import { Pictures } from '../core/pictures.js';

const PAUSE = 250;      // milliseconds without a key before the server is asked
const MOST_CLASSES = 6;  // bars of an answer

function class_bars(probabilities) {
  const named = Object.entries(probabilities).sort((a, b) => b[1] - a[1]).slice(0, MOST_CLASSES);
  return el('div', { class: 'live-bars' }, named.map(([name, share]) => [
    el('span', { class: 'live-name' }, name),
    el('span', { class: 'live-track' }, el('i', { style: { width: `${100 * share}%` } })),
    el('span', { class: 'live-number' }, number(share))]));
}

function answer_line(one) {
  if (one.error) return el('p', { class: 'live-error' }, one.error);
  const text = typeof one.answer === 'string' ? one.answer : JSON.stringify(one.answer);
  return el('div', { class: 'live-one' }, el('p', { class: 'live-text' }, text.trim()),
    one.probabilities && !Array.isArray(one.probabilities) ? class_bars(one.probabilities) : '');
}

export class Live {
  constructor(form, part, draw) {
    this.form = form;
    this.draw = draw;
    this.part = part;
    this.opening = part ? part.panels[0].parentElement : undefined;
    this.field = form.querySelector('textarea');
    this.answer = form.querySelector('#live-answer');
    this.asked = 0;
    form.addEventListener('submit', (event) => { event.preventDefault(); this.ask(); });
    this.field.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), PAUSE);
    });
    const { example } = form.dataset;
    if (example) {
      form.querySelector('.live-tools').append(el('button', { type: 'button', onclick: () => this.take(example) }, 'Try the example'));
    }
  }
  take(text) {
    this.field.value = text;
    this.field.focus();
    this.ask();
  }
  // An answer that a newer question has overtaken is dropped.
  async ask() {
    clearTimeout(this.timer);
    const turn = ++this.asked;
    const input = this.field.value;
    if (!input.trim()) {
      this.answer.replaceChildren();
      return;
    }
    this.form.setAttribute('aria-busy', 'true');
    let reply;
    try {
      const response = await fetch(this.form.dataset.address, { method: 'POST',
        headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ input }) });
      reply = await response.json();
    } catch {
      reply = { error: 'the server does not answer' };
    }
    if (turn !== this.asked) return;
    this.form.removeAttribute('aria-busy');
    this.show(reply);
  }
  show(reply) {
    if (reply.error) {
      this.answer.replaceChildren(el('p', { class: 'live-error' }, reply.error));
      return;
    }
    this.answer.replaceChildren(...reply.answers.map(answer_line),
      ...(reply.notes.length ? [el('ul', { class: 'notes' }, reply.notes.map((note) => el('li', {}, note)))] : []));
    if (this.opening && reply.explanations.length) this.show_pictures(reply.explanations);
    document.body.dataset.answered = String(this.asked);
  }
  // The tab, layer, head and query that the reader chose stay chosen.
  show_pictures(explanations) {
    const before = this.part.panels[this.part.chosen]?.querySelector('figure')?.frame?.state;
    const chosen = Math.min(this.part.chosen, explanations.length - 1);
    this.opening.replaceChildren(...explanations.map((one) => el('script', { type: 'application/json', class: 'explanation' }, JSON.stringify(one))));
    this.part = new Pictures(this.opening, this.draw);
    this.part.show(chosen);
    const frame = this.part.panels[chosen].querySelector('figure')?.frame;
    if (!frame || !before) return;
    const { layers, heads, queries } = frame.model;
    const kept = {};
    if (before.layer < layers.names.length) kept.layer = before.layer;
    if (before.head < heads.names.length && (before.head !== -1 || frame.all_heads)) kept.head = before.head;
    if (before.query < queries.length) kept.query = before.query;
    frame.pick({ ...kept, curve: before.curve });
  }
}

export function start_live(form, parts, draw) {
  return new Live(form, parts[0], draw);
}
