"""screenshots.py PAGE.html OUT: every section of a report, at 1280 and 390 wide, in both themes, as PNG to look at."""

import os
import sys

from browser import Browser


def main(page, out, *only):
    os.makedirs(out, exist_ok=True)
    for width in (1280, 390):
        for theme in ("light", "dark"):
            browser = Browser(width, 900, theme == "dark")
            browser.open(page)
            browser.settle()
            name = f"{width}-{theme}"
            sections = browser.run("[...document.querySelectorAll('section.part')].map((s) => s.id)")
            browser.screenshot(f"{out}/{name}-0-top.png", "figure.demo" if browser.run("Boolean(document.querySelector('figure.demo'))") else "header")
            for i, section in enumerate(sections, 1):
                if not only or section in only:
                    browser.screenshot(f"{out}/{name}-{i}-{section}.png", f"#{section} figure")
            wide = browser.run("document.documentElement.scrollWidth")
            print(name, "sections", len(sections), "scroll width", wide, "errors", len(browser.errors), browser.errors[:3], "requests", browser.requests[1:])
            browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
