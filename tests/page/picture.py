"""picture.py TOUR OUT.png [system...]: the README's picture, four figures of a tour side by side."""

import os
import sys
import tempfile

from browser import Browser

EXPORT = """(async () => {
  const figure = document.querySelector('figure[data-system="%s"]');
  let blob = null;
  const create = URL.createObjectURL;
  URL.createObjectURL = (b) => { blob = b; return create(b); };
  HTMLAnchorElement.prototype.click = () => {};
  figure.querySelectorAll('.buttons button')[1].click();
  while (!blob) await new Promise((done) => setTimeout(done, 20));
  URL.createObjectURL = create;
  return new Promise((done) => { const reader = new FileReader(); reader.onload = () => done(reader.result); reader.readAsDataURL(blob); });
})()"""

STYLE = """body { margin: 0; background: #e2e3df; display: grid; grid-template-columns: 1fr 1fr; gap: 1px; width: 1200px; }
div { background: #fff; height: 400px; overflow: hidden; padding: 10px 6px; } img { width: 100%; }"""


def main(tour, out, *systems):
    browser = Browser(900, 900)
    try:
        images = []
        for system in systems:
            browser.open(os.path.join(tour, system + ".html"))
            browser.settle()
            images.append(browser.run(EXPORT % system))
        with tempfile.NamedTemporaryFile("w", suffix=".html", delete=False) as file:
            cells = "".join(f'<div><img src="{image}"></div>' for image in images)
            file.write(f"<!DOCTYPE html><style>{STYLE}</style><body data-ready=yes>{cells}")
        browser.resize(1200, 840)
        browser.open(file.name)
        browser.run("Promise.all([...document.images].map((image) => image.decode()))")
        browser.screenshot(out, "body")
        os.unlink(file.name)
    finally:
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
