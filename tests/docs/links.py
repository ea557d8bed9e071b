"""What a reader of a built site must not meet: links within it that lead nowhere, and log lines."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The names that a page can be entered by, and where it points."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.anchors.update(value for name in ("id", "name") if (value := given.get(name)))
        self.targets.update(value for name in ("href", "src") if (value := given.get(name)))


def broken(site: Path) -> list[str]:
    """'page -> target' of every link or picture within the site that leads nowhere."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    return sorted(
        f"{path.relative_to(site)} -> {target}"
        for path, page in pages.items()
        for target in page.targets
        if not _leads_somewhere(target, path, pages)
    )


def _leads_somewhere(target: str, page: Path, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return True  # elsewhere: tests use no network
    file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if file.is_dir():
        file /= "index.html"
    anchor = unquote(parts.fragment)
    return file.exists() and (not anchor or file not in pages or anchor in pages[file].anchors)


# glog's prefix of a message (level and date, time, thread, file), and what XLA says of another processor
LOG = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [\w./]+:\d+\]|could lead to execution errors")


def log_lines(site: Path) -> list[str]:
    """'page: line' of every message that a program logged into a page."""
    return sorted(
        f"{path.relative_to(site)}: {line.strip()}"
        for path in site.rglob("*.html")
        for line in path.read_text(encoding="utf-8").splitlines()
        if LOG.search(line)
    )
