"""`lcse bench`: measure an encoder, a mode or this machine, and keep the figures."""

from __future__ import annotations

from importlib import import_module

import click

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


class _LazyGroup(click.Group):
    """Lists its commands from a table and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"lcse_plugins.bench.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=_LazyGroup, epilog="Example: lcse bench retrieval photos/photos.jsonl --half B")
def bench() -> None:
    """Measure quality and speed; every figure can be kept with the command that made it."""
