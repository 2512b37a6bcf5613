"""`lcse bench`: measure an encoder, a mode or this machine, and keep the figures."""

from __future__ import annotations

import click

from lcse_plugins.cli.lazy_group import LazyGroup

__all__ = ["bench"]

COMMANDS = {
    "retrieval": ("quality_commands:retrieval", "P@10 and AUC of logical queries over labelled photographs."),
    "factor": ("quality_commands:factor", "FACTOR-Bench: which of two captions is true?"),
    "factor-build": ("quality_commands:factor_build", "Build such a benchmark from labelled photographs."),
    "negbench": ("quality_commands:negbench", "NegBench: multiple choice and retrieval with negation."),
    "retention": ("quality_commands:retention", "Captions without logic still find their images."),
    "calibrate": ("analysis_commands:calibrate", "The grid of μ and β under both objectives, and without labels."),
    "diagnose": ("analysis_commands:diagnose", "Why plain similarity fails at logic, for any encoder."),
    "timing": ("speed_commands:timing", "Exact logical search against plain search."),
    "concurrency": ("speed_commands:concurrency", "Many searches at once: right answers, free event loop."),
    "qdrant": ("speed_commands:qdrant", "Recall, round trips and time in a Qdrant collection."),
    "tables": ("analysis_commands:tables", "The tables of the README from kept results."),
}
_TABLE = {name: (f"lcse_plugins.bench.{where}", text) for name, (where, text) in COMMANDS.items()}


@click.command(cls=LazyGroup, table=_TABLE, epilog="Example: lcse bench retrieval photos/photos.jsonl --half B")
def bench() -> None:
    """Measure quality and speed; every figure can be kept with the command that made it."""
