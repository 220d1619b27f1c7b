"""The files that pages load: nothing is fetched from elsewhere, and the one of others is pinned."""

from __future__ import annotations

import re
from hashlib import sha256

from api.console import static_file
from tests.fixtures_paths import PROJECT

FOLDER = PROJECT / "api" / "console"


def test_the_script_of_others_is_the_pinned_one_and_its_licence_is_beside_it() -> None:
    name = f"htmx-{static_file.HTMX_VERSION}.min.js"
    assert sha256((FOLDER / "static" / name).read_bytes()).hexdigest() == static_file.HTMX_SHA256
    assert "Zero-Clause BSD" in (FOLDER / "static" / "htmx-LICENSE.txt").read_text("utf-8")


def test_every_file_is_served_but_the_licence() -> None:
    kept = {path.name for path in (FOLDER / "static").iterdir()}
    assert kept == {*static_file.NAMES, "htmx-LICENSE.txt"}


def test_no_template_has_an_inline_script_a_style_or_an_address_of_elsewhere() -> None:
    inline = re.compile(
        r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|hx-on|https?://|\| ?safe\b"
    )
    for template in sorted((FOLDER / "templates").iterdir()):
        assert inline.findall(template.read_text("utf-8")) == [], template.name


def test_our_own_files_name_no_other_host() -> None:
    for name in ("console.css", "console.js"):
        text = static_file.file_content(name).decode()
        assert re.findall(r"https?://|//\w+\.\w+|@import|eval\(|innerHTML", text) == []
