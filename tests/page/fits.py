"""What is wrong with the looks of a page, whatever it shows: one list of sentences, empty where nothing is.

fits.py FOLDER [name...] prints it for the pages of a folder (a tour), at 1280 and 390 wide, in both themes, under every tab.
"""

import sys

from browser import opened_pages

# Looks at what is drawn now. `seen` leaves out what is hidden, empty or read aloud only.
FAULTS = r"""(() => {
  const faults = new Set(), wide = document.documentElement.clientWidth;
  const say = (kind, element, more = '') => faults.add(`${kind}: ${name(element)} ${more}`.trim());
  const name = (e) => `<${e.tagName.toLowerCase()}${e.getAttribute('class') ? '.' + e.getAttribute('class').split(' ').join('.') : ''}> "${(e.textContent || e.getAttribute('aria-label') || '').trim().slice(0, 40)}"`;
  const seen = (e) => { const b = e.getBoundingClientRect(); return b.width > 1 && b.height > 1 && b.right > -500 && e.checkVisibility({ opacityProperty: true, visibilityProperty: true }); };
  const scrolls = (e) => { for (let p = e; p; p = p.parentElement) if (/auto|scroll/.test(getComputedStyle(p).overflowX) && p !== document.documentElement && p !== document.body) return p; return null; };
  // What a button opens is not seen before, and what fades out above it is not read.
  const FADE = 75, folded = (e) => { const p = e.closest('.picture.tall'); return p && e.getBoundingClientRect().bottom > p.getBoundingClientRect().bottom - FADE; };
  const clipped = (e) => { if (folded(e)) return true; for (let p = e.parentElement; p; p = p.parentElement) { const s = getComputedStyle(p); if (/hidden|clip/.test(s.overflowX) && p.clientWidth <= 2) return true; } return false; };

  if (document.documentElement.scrollWidth > wide) faults.add(`the page is ${document.documentElement.scrollWidth} wide`);
  for (const e of document.querySelectorAll('.equation')) if (seen(e)) {
    const box = e.getBoundingClientRect(), math = e.querySelector('math');
    if (math && math.getBoundingClientRect().right > box.right + 1 || e.scrollWidth > e.clientWidth + 1) say('equation wider than its box', e);
  }
  for (const e of document.querySelectorAll('body *')) {
    if (!seen(e) || clipped(e)) continue;
    const b = e.getBoundingClientRect();
    if (!e.closest('svg') && (b.right > wide + 1 || b.left < -1) && !scrolls(e)) say('past the page', e, `${Math.round(b.left)} to ${Math.round(b.right)}`);
  }
  for (const t of document.querySelectorAll('svg text')) {
    if (!seen(t) || t.closest('.read-aloud')) continue;
    const b = t.getBoundingClientRect(), s = t.ownerSVGElement.getBoundingClientRect();
    if (b.left < s.left - 1.5 || b.right > s.right + 1.5 || b.top < s.top - 2 || b.bottom > s.bottom + 2)
      if (getComputedStyle(t.ownerSVGElement).overflow !== 'visible') say('cut by its picture', t);
  }

  // Contrast: text against what lies under its middle.
  const numbers = (colour) => { const c = colour.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0]; if (/^color\(srgb/.test(colour)) for (let i = 0; i < 3; ++i) c[i] *= 255; return [c[0], c[1], c[2], c[3] ?? 1]; };
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const light = (c) => { const l = c.slice(0, 3).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * l[0] + 0.7152 * l[1] + 0.0722 * l[2]; };
  const opacity = (e) => { let o = 1; for (let p = e; p; p = p.parentElement) o *= Number(getComputedStyle(p).opacity); return o; };
  const paint = (e) => { const s = getComputedStyle(e), svg = e instanceof SVGElement && e.tagName !== 'svg';
    const c = numbers(svg ? (s.fill === 'none' ? 'rgba(0,0,0,0)' : s.fill) : s.backgroundColor); c[3] *= (svg ? Number(s.fillOpacity) : 1) * opacity(e); return c; };
  const under = (e, x, y) => { let colours = []; for (const p of document.elementsFromPoint(x, y)) { if ((p === e && e instanceof SVGElement) || (p !== e && e.contains(p)) || p.tagName === 'text' || p.tagName === 'tspan') continue;
      if (p.tagName === 'image' || p.tagName === 'IMG' || p.tagName === 'CANVAS' || getComputedStyle(p).backgroundImage !== 'none' || /^url/.test(getComputedStyle(p).fill)) return null;
      const c = paint(p); if (c[3] > 0) { colours.push(c); if (c[3] >= 0.999) break; } }
    return colours.reverse().reduce((a, c) => over(c, a), [255, 255, 255, 1]); };
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !seen(e) || clipped(e) || e.closest('[disabled], [aria-disabled=true], script, style, option, title, desc')) continue;
    const b = e.getBoundingClientRect(), x = b.left + b.width / 2, y = b.top + b.height / 2;
    const inside = (view) => x >= view.left && y >= view.top && x <= view.right - 1 && y <= view.bottom - 1;
    const box = scrolls(e)?.getBoundingClientRect();
    if (!inside({ left: 0, top: 0, right: innerWidth, bottom: innerHeight }) || (box && !inside(box))) continue;  // scrolled away
    const svg = e instanceof SVGElement, s = getComputedStyle(e), colour = numbers(svg ? s.fill : s.color);
    colour[3] *= opacity(e) * (svg ? Number(s.fillOpacity) : 1);
    const ground = under(e, x, y);
    if (!ground || colour[3] === 0) continue;
    const [a, c] = [light(over(colour, ground)), light(ground)], ratio = (Math.max(a, c) + 0.05) / (Math.min(a, c) + 0.05);
    const halo = svg && s.paintOrder.startsWith('stroke') && s.stroke !== 'none';
    if (ratio < 4.5 && !halo) say(`contrast ${ratio.toFixed(2)}`, e);
  }
  return [...faults];
})()"""

TALLEST = 16000
OVERLAP = 200  # a text at the edge of one window is inside of the next
TABS = "document.querySelectorAll('.tabs button')"


def faults(browser):
    """Of the open page, under every tab, with every fold open."""
    browser.run("document.querySelectorAll('details.fold').forEach((d) => { d.open = true; })")
    found = []
    width = browser.run("innerWidth")
    for tab in range(max(1, browser.run(TABS + ".length"))):
        browser.run(f"{TABS}[{tab}]?.click()")
        height = browser.run("document.documentElement.scrollHeight")
        browser.resize(width, min(height, TALLEST))
        for top in range(0, height, TALLEST - OVERLAP):  # what lies under a text can be asked of what is in the window
            browser.run(f"scrollTo(0, {top})")
            browser.settle()
            found += [fault for fault in browser.run(FAULTS) if fault not in found]
    browser.resize(width)
    return found


MOST_HIGH = 4000  # of a page of the tour, with every fold open


def too_tall(browser):
    """One sentence if the open page is, under a tab, with every fold open."""
    browser.run("document.querySelectorAll('details.fold').forEach((d) => { d.open = true; })")
    heights = []
    for tab in range(max(1, browser.run(TABS + ".length"))):
        browser.run(f"{TABS}[{tab}]?.click()")
        browser.settle()
        heights.append(browser.run("document.documentElement.scrollHeight"))
    return [f"the page is {max(heights)} tall under picture {heights.index(max(heights)) + 1}"] if max(heights) > MOST_HIGH else []


def main(folder, *only):
    for browser, page in opened_pages(folder, only):
        for fault in too_tall(browser) + faults(browser):
            print(f"{page}: {fault}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
