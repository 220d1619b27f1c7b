"""The tags of a page, and text that would break one."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = '<script>alert("1")</script> =1+1 | `x` [y](javascript:z) \x00\udcff'


class Tags(HTMLParser):
    """Collects the tags and attributes that a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
