"""What a run works with, and how it is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from outbox.clock import Clock
from outbox.reconciliation.ports import LogReader, ReconciliationSource, RunStore
from spark.compare import bucket_checksums
from spark.compare.sha256_check import Digest
from spark.cut.sources import Sources
from spark.findings.topic_rules import TopicRules
from spark.report.language import Language
from spark.report.progress import Progress
from spark.report.report import FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What a run works with; every concrete adapter comes from the wiring."""

    source: ReconciliationSource
    log_facts: LogReader
    run_store: RunStore
    sources: Sources
    clock: Clock
    progress: Progress
    pause: Callable[[float], object]
    tell: Callable[[str, Mapping[str, Any]], str] | None = None
    """Posts the news of a run, by its id, and says in a few words how that ended."""
    expose: Callable[[], str] | None = None
    """Writes the metrics of the newest run to a file, and says how that ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run is done."""

    progress_topic: str
    report_dir: Path
    stage_uri: str
    grace_seconds: int
    exclude_topics: frozenset[str] = frozenset()
    topic_rules: TopicRules = field(default_factory=dict)
    accept_topics: frozenset[str] = frozenset()
    """Topics that may have been made anew: they are judged from this run on."""
    full: bool = False
    """Read everything, whatever an earlier run has read."""
    since: datetime | None = None
    """Judge what was published from then on; for a first run. None keeps to what is stored."""
    until: datetime | None = None
    """Judge what was published up to then."""
    mode: bucket_checksums.Mode = bucket_checksums.Mode.AUTO
    """How both sides are compared."""
    bucket_messages: int = bucket_checksums.BUCKET_MESSAGES
    """About so many messages are folded into one bucket."""
    digest: Digest = Digest.XXH64
    """By what the sample is compared."""
    show_keys: bool = False
    formats: Sequence[str] = FORMATS
    language: Language = Language.EN
    versions: Mapping[str, str]
