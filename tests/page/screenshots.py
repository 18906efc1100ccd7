"""screenshots.py FOLDER OUT [name...]: the pages of a folder (a tour), whole, at 1280 and 390 wide, in both themes, as PNG to look at."""

import os
import sys

from browser import opened_pages


def main(folder, out, *only):
    os.makedirs(out, exist_ok=True)
    for browser, page in opened_pages(folder, only):
        browser.settle()
        browser.screenshot(f"{out}/{page}.png")
        high, wide = browser.run("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")
        print(f"{page}: height {high}, width {wide}, errors {browser.errors}")
        browser.errors.clear()


if __name__ == "__main__":
    main(*sys.argv[1:])
