"""What people read of a run, in their language; English is the source, and what has no translation.

Ids, classes, commands and evidence are the same in every language, and so are JSON and CSV.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files


class Language(StrEnum):
    """Of the page and of Markdown."""

    EN = "en"
    ZH = "zh"


@dataclass(frozen=True, slots=True)
class Words:
    """Says an English text in another language."""

    known: Mapping[str, str] = field(default_factory=dict)
    """The texts of ``render/texts``, by the English one."""

    def __call__(self, text: str, **facts: object) -> str:
        """Return the text with its facts filled in."""
        said = self.known.get(text, text)
        return said.format(**facts) if facts else said


ENGLISH = Words()


@cache
def words_of(language: Language) -> Words:
    """Return the words of a language."""
    if language is Language.EN:
        return ENGLISH
    known = files("spark.report").joinpath("texts", f"{language}.toml").read_text("utf-8")
    return Words(tomllib.loads(known)["texts"])
