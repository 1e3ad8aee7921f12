"""Check the links between the pages of a built guide: every page, anchor and file that a page refers to is there.

Sphinx's linkcheck opens external links only; `-W` finds unknown references in the sources, but not links in generated pages.

    python docs/guide/check_links.py target/guide/html
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page and what it refers to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.anchors.add(value)
            elif name in ("href", "src") and value:
                self.targets.append(value)


def main(root: Path) -> int:
    # Templates of the theme lie among its static files.
    found = (path for path in sorted(root.rglob("*.html")) if "_static" not in path.relative_to(root).parts)
    pages = {path.resolve(): Page(path) for path in found}
    if not pages:
        print(f"{root} has no pages")
        return 1
    broken, checked = [], 0
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.exists():
                broken.append(f"{path.relative_to(root.resolve())}: {target} does not exist")
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
                broken.append(f"{path.relative_to(root.resolve())}: {target} has no such anchor")
    print("\n".join(broken) or f"guide: {checked:,} links within {len(pages)} pages lead somewhere")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
