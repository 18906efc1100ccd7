"""screenshots.py FOLDER OUT [name...]: the pages of a folder (a tour), whole, at 1280 and 390 wide, in both themes, as PNG to look at."""

import os
import sys

from browser import Browser


def main(folder, out, *only):
    os.makedirs(out, exist_ok=True)
    names = only or sorted(name.removesuffix(".html") for name in os.listdir(folder) if name.endswith(".html"))
    for width in (1280, 390):
        for theme in ("light", "dark"):
            browser = Browser(width, 900, theme == "dark")
            for name in names:
                browser.open(os.path.join(folder, name + ".html"))
                browser.settle()
                browser.screenshot(f"{out}/{name}-{width}-{theme}.png")
                high, wide = browser.run("[document.documentElement.scrollHeight, document.documentElement.scrollWidth]")
                print(f"{name} {width} {theme}: height {high}, width {wide}, errors {browser.errors}")
                browser.errors.clear()
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
