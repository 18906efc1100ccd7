"""What a page loses when it is printed to a PDF, which is read here with the standard library alone."""

import base64
import re
import zlib

STREAM = re.compile(rb"<<((?:(?!endobj).)*?)>>\s*stream\r?\n(.*?)endstream", re.DOTALL)
TITLE = re.compile(rb"/Title (?:<([0-9A-F]*)>|\(((?:\\.|[^\\)])*)\))", re.DOTALL)
PAINT = re.compile(rb"([\d.]+) ([\d.]+) ([\d.]+) (?:rg|RG)\b")

# Of each figure: its title, the opaque colours it is drawn in, and how many of its parts are made of pixels.
DRAWN = r"""[...document.querySelectorAll('figure.explanation')].map((f) => {
    const colours = new Set(), stage = [...f.querySelectorAll('.stage, .stage *')].filter((e) => e.checkVisibility({ visibilityProperty: true }));
    for (const e of stage) {
      const s = getComputedStyle(e), shape = ['rect', 'circle', 'path', 'polygon'].includes(e.tagName);
      for (const c of shape ? [s.fill, s.stroke] : e instanceof SVGElement ? [] : [s.backgroundColor])
        if (/^rgb\(/.test(c)) colours.add(c.match(/\d+/g).join());
    }
    return { title: f.querySelector('h4').textContent, colours: [...colours].map((c) => c.split(',').map(Number)),
             pixels: stage.filter((e) => e.tagName === 'CANVAS' && e.width && e.height).length };
  })"""


class Paper:
    def __init__(self, pdf):
        self.titles = {self._text(*found) for found in TITLE.findall(pdf)}
        self.colours = set()  # (red, green, blue), 0 to 255
        self.images = 0
        for head, body in STREAM.findall(pdf):
            if b"/Subtype /Image" in head:
                self.images += b"/SMask" in head or b"/DeviceGray" not in head  # a mask is a part of one
            elif b"/FlateDecode" in head:
                self.colours |= {tuple(round(255 * float(share)) for share in one) for one in PAINT.findall(zlib.decompressobj().decompress(body))}

    @staticmethod
    def _text(coded, plain):
        text = bytes.fromhex(coded.decode()).decode("utf-16") if coded else re.sub(rb"\\(.)", rb"\1", plain).decode("latin-1")
        return bare(text)

    def has(self, colour):
        """Up to what is lost in the digits of a PDF."""
        return any(max(abs(a - b) for a, b in zip(colour, one)) <= 1 for one in self.colours)


def bare(text):
    """Where a line of a heading ends, its PDF may have a blank or none."""
    return "".join(text.split())


def printed(browser):
    """The open page as a printer gets it that is told to print no backgrounds."""
    return Paper(base64.b64decode(browser.call("Page.printToPDF", printBackground=False, generateTaggedPDF=True, generateDocumentOutline=True)["data"]))


def lost(browser):
    """Sentences on what the figures of the open page have and its PDF has not: none if it is whole."""
    # A scale has all colours, whatever the picture beside it has.
    browser.run("(() => { const s = document.createElement('style'); s.id = 'no-scales'; s.textContent = '.legend { visibility: hidden }'; document.head.append(s); })()")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    figures = browser.run(DRAWN)
    browser.run("dispatchEvent(new Event('afterprint'))")
    paper = printed(browser)
    browser.run("document.getElementById('no-scales').remove()")
    out = [f"no figure '{figure['title']}'" for figure in figures if bare(figure["title"]) not in paper.titles]
    for figure in figures:
        out += [f"{figure['title']}: no colour {colour}" for colour in figure["colours"] if not paper.has(colour)]
    pixels = sum(figure["pixels"] for figure in figures)
    return out + ([f"{paper.images} pictures of pixels, expected {pixels}"] if paper.images < pixels else [])
