// The pictures of one part: the first is shown, tabs lead to the others, each drawn when it is first shown. A few tabs tell the
// story; those of further examples open on demand. A picture has an address of its own, and paper has no tabs: there all of them
// stand one under another.

import { el, shorten } from './dom.js';

const FIRST_TABS = 4;

export class Pictures {
  constructor(host, draw) {
    this.draw = draw;
    this.panels = [...host.querySelectorAll('script.explanation')].map((script) => {
      const panel = el('div', { class: 'panel', id: script.id || undefined, hidden: true });
      script.removeAttribute('id');
      script.replaceWith(panel);
      panel.append(script);
      return panel;
    });
    this.chosen = 0;
    if (this.panels.length > 1) this.build_tabs(host);
  }
  build_tabs(host) {
    const shown = this.panels.map((panel) => JSON.parse(panel.firstElementChild.textContent));
    // Two pictures of one title are told apart by what the model said.
    const alike = (title) => shown.filter((other) => other.title === title).length > 1;
    this.tabs = this.panels.map((panel, i) => {
      const { title, outcome } = shown[i];
      const name = [title || `Picture ${i + 1}`, alike(title) && outcome ? shorten(outcome.split(/, p = | \(|\n/)[0], 28) : ''].filter(Boolean).join(': ');
      panel.setAttribute('role', 'tabpanel');
      panel.setAttribute('aria-label', name);
      return el('button', { type: 'button', role: 'tab', 'aria-controls': panel.id || undefined, onclick: () => this.show(i), onkeydown: (event) => this.key(event, i) }, name);
    });
    this.list = el('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Pictures', 'data-export': 'no' }, this.tabs);
    const folded = this.tabs.length - FIRST_TABS;
    if (folded > 1) this.more = el('button', { type: 'button', class: 'more-tabs', onclick: () => this.fold(!this.folded) }, `${folded} more pictures`);
    host.prepend(el('div', { class: 'tab-row' }, this.list, this.more || ''));
    this.fold(Boolean(this.more));
  }
  fold(folded) {
    this.folded = folded;
    this.tabs.forEach((tab, k) => { tab.hidden = folded && k >= FIRST_TABS && k !== this.chosen; });
    if (!this.more) return;
    this.more.setAttribute('aria-expanded', !folded);
    this.more.textContent = folded ? `${this.tabs.length - FIRST_TABS} more pictures` : 'fewer';
  }
  key(event, i) {
    const last = this.tabs.length - 1;
    const next = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: last }[event.key];
    if (next === undefined || !this.tabs[next]) return;
    event.preventDefault();
    this.show(next);
    this.tabs[next].focus();
  }
  show(i) {
    this.chosen = i;
    if (this.tabs?.[i].hidden) this.fold(false);
    this.panels.forEach((panel, k) => { panel.hidden = k !== i; });
    this.tabs?.forEach((tab, k) => {
      tab.setAttribute('aria-selected', k === i);
      tab.setAttribute('tabindex', k === i ? 0 : -1);
    });
    this.fill(this.panels[i]);
  }
  fill(panel) {
    const script = panel.querySelector('script.explanation');
    if (script && !panel.dataset.drawn) {
      panel.dataset.drawn = 'yes';
      this.draw(script);
    }
  }
  show_all() {
    for (const panel of this.panels) {
      panel.hidden = false;
      this.fill(panel);
    }
  }
}
