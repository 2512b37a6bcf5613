"""`lcse bench`: measure an encoder or a mode on your own images, and keep the figures with their command."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from lcse_plugins.cli.options import encoder_option, fitted_mode_option, json_option, load, print_json, progress_bar
from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.config import Mode, ScoringConfig

if TYPE_CHECKING:
    from lcse_plugins.bench.factor import Parses
    from lcse_plugins.bench.photographs import Half, RememberingEncoder
    from lcse_plugins.calibrating.labelled import LabelledImages
    from lcse_plugins.encoders.protocol import FloatArray
    from lcse_plugins.scoring.calibration import Calibration

__all__ = ["bench"]

Command: TypeAlias = Callable[..., None]
existing = click.Path(path_type=Path, exists=True)
folder = click.Path(path_type=Path, file_okay=False)


@click.group(epilog="Example: lcse bench retrieval photos/photos.jsonl --half B")
def bench() -> None:
    """Measure quality on labelled images; every figure can be kept with the command that made it.

    LABELS is a CSV with path and labels (a;b;c), COCO's JSON, or JSON lines with file, classes and captions.
    """


@dataclass(frozen=True, kw_only=True)
class Run:
    """Which encoder and calibration to measure with, and where the figures go."""

    encoder: str
    calibration: Path | None
    mu: float | None
    beta: float | None
    cache: Path | None
    limit: int | None
    seed: int
    out: Path | None
    name: str | None
    as_json: bool

    @functools.cached_property
    def model(self) -> RememberingEncoder:
        """The encoder."""
        from lcse_plugins.bench.photographs import RememberingEncoder
        from lcse_plugins.encoders.protocol import checked

        return RememberingEncoder(checked(load(self.encoder)))

    @functools.cached_property
    def chosen(self) -> Calibration | None:
        """The calibration that the options give; None for the encoder's preset."""
        from lcse_plugins.scoring.calibration import Calibration

        if self.mu is not None and self.beta is not None and self.calibration is None:
            return Calibration(mu=self.mu, beta=self.beta, encoder_id=self.model.encoder_id)
        if self.mu is not None or self.beta is not None:
            raise click.UsageError("give --calibration, or --mu and --beta")
        return None if self.calibration is None else Calibration.load(self.calibration)

    def encode(self, paths: Sequence[Path]) -> FloatArray:
        """(n, d) vectors of pictures, with a progress bar."""
        from lcse_plugins.bench.photographs import image_vectors

        _ = self.chosen  # what is wrong with the options is told before the work
        with progress_bar("encoding") as progress:
            return image_vectors(self.model, paths, cache=self.cache, progress=progress)

    def finish(self, command: str, text: str, result: Mapping[str, Any]) -> None:
        """Print what was found, and keep it where that was asked for."""
        from lcse_plugins.bench.reports import write_record

        used = self.chosen or self.model.calibration
        told = {**result, "calibration": None if used is None else used.to_json()}
        if self.as_json:
            print_json(told)
        else:
            click.echo(text)
        if self.out is not None:
            path = write_record(self.out, self.name or command, told, encoder_id=self.model.encoder_id)
            click.echo(f"kept in {path}", err=True)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Which labelled images to measure on."""

    labels: Path
    images: Path | None
    half: Half | None

    def encoded(self, run: Run) -> tuple[LabelledImages, FloatArray]:
        """The images of the half that was asked for, at most so many as the run allows, with their vectors."""
        from lcse_plugins.bench.photographs import half_of, take_images
        from lcse_plugins.calibrating.labelled import read_labels

        images = read_labels(self.labels, images=self.images)
        positions = range(len(images)) if self.half is None else half_of(images, self.half)
        if not len(positions):
            raise InvalidOption(f"half {self.half} of {self.labels} holds no pictures")
        images = take_images(images, positions[: run.limit])
        return images, run.encode(images.paths)


def _bundled(name: str, kind: type[Any], *options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Options that reach a command as one argument of that kind."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            own = {field.name: given.pop(field.name) for field in fields(kind)}
            command(**given, **{name: kind(**own)})

        for option in reversed(options):
            called = option(called)
        return called

    return decorate


run_options = _bundled(
    "run",
    Run,
    encoder_option,
    click.option("--calibration", type=existing, metavar="FILE", help="From `lcse calibrate`; else the encoder's own."),
    click.option("--mu", type=float, help="μ, with --beta, instead of a file."),
    click.option("--beta", type=float, help="β, with --mu."),
    click.option("--cache", type=folder, help="Keep image vectors in this folder for the next run."),
    click.option("--limit", type=click.IntRange(min=1), help="Only this many items, for a quick look."),
    click.option(
        "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of what is drawn at random."
    ),
    click.option("--out", type=folder, help="Keep the figures in this folder, as JSON."),
    click.option("--name", help="Name of the kept file; by default the command's."),
    json_option,
)
label_options = _bundled(
    "labels",
    Labels,
    click.argument("labels", type=existing),
    click.option("--images", type=existing, help="Where pictures are; by default beside LABELS."),
    click.option("--half", type=click.Choice(["A", "B"]), help="Only one of two fixed halves: tune on A, report B."),
)
image_folder = click.option("--images", type=existing, required=True, help="The folder that image paths start from.")


@bench.command(epilog="Example: lcse bench retrieval photos/photos.jsonl --half B --out results")
@label_options
@click.option(
    "--pairs", type=click.IntRange(min=1), default=250, show_default=True, help="Pairs of classes to ask about."
)
@click.option(
    "--fewest",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Images that answer each query, and that do not, at least.",
)
@run_options
def retrieval(labels: Labels, pairs: int, fewest: int, run: Run) -> None:
    """Compare rankings by logical queries, rivals included.

    Queries come from pairs of classes of LABELS. Told are the precision of the first ten images, the area under the
    curve, how many of the first ten show what was excluded, and the lead of the default mode with its 95 % interval.
    """
    from lcse_plugins.bench.retrieval import draw_questions, measure_retrieval, retrieval_text
    from lcse_plugins.bench.rivals import make_rankers

    images, vectors = labels.encoded(run)
    questions = draw_questions(images, pairs=pairs, fewest=fewest, seed=run.seed)
    rankers = make_rankers(run.model, vectors, calibration=run.chosen)
    with progress_bar("asking") as progress:
        result = measure_retrieval(questions, rankers, progress=progress)
    run.finish("retrieval", retrieval_text(result), {**result, "half": labels.half, "seed": run.seed})


@bench.command(epilog="Example: lcse bench factor factor_bench.jsonl --images coco")
@click.argument("file", type=existing)
@image_folder
@click.option(
    "--parses",
    type=click.Choice(["oracle", "own"]),
    default="oracle",
    show_default=True,
    help="Take the logic of captions from FILE, or read it with our grammar.",
)
@run_options
def factor(file: Path, images: Path, parses: Parses, run: Run) -> None:
    """Choose the true one of two captions (FACTOR-Bench).

    FILE is factor_bench.jsonl, or one of the same form. Every mode chooses for every sample.
    """
    from lcse_plugins.bench.factor import factor_text, measure_factor, read_factor
    from lcse_plugins.bench.rivals import MODES
    from lcse_plugins.scorer import LogicScorer

    read = read_factor(file)
    count = min(run.limit or len(read.samples), len(read.samples))
    samples = [read.samples[i * len(read.samples) // count] for i in range(count)]  # some of every operator
    names = sorted({sample.image for sample in samples})
    vectors = dict(zip(names, run.encode([images / image for image in names]), strict=True))
    modes = {}
    for mode, config in MODES.items():
        scorer = LogicScorer(run.model, calibration=run.chosen, config=config)
        with progress_bar(mode) as progress:
            modes[mode] = measure_factor(samples, scorer, vectors, parses=parses, progress=progress)
    result = {"official": read.official, "sha256": read.sha256, "parses": parses, "modes": modes}
    run.finish("factor", factor_text(result), result)


@bench.command(epilog="Example: lcse bench negbench COCO_val_mcq.csv --images coco")
@click.argument("file", type=existing)
@image_folder
@click.option("--retrieval", "captions", type=existing, help="NegBench's retrieval file, for R@5.")
@run_options
def negbench(file: Path, images: Path, captions: Path | None, run: Run) -> None:
    """Choose the true one of four captions (NegBench).

    FILE is NegBench's multiple-choice CSV; with its retrieval file, images are also searched by captions that negate.
    """
    import numpy as np

    from lcse_plugins.bench import negbench as module
    from lcse_plugins.bench.rivals import MODES
    from lcse_plugins.scorer import LogicScorer

    choices = module.read_choices(file)[: run.limit]
    asked = [] if captions is None else module.read_retrieval_captions(captions)[: run.limit]
    gallery = sorted({image for image, _ in asked})
    names = sorted({choice.image for choice in choices} | set(gallery))
    vectors = dict(zip(names, run.encode([images / image for image in names]), strict=True))
    shown = np.array([vectors[image] for image in gallery])
    sought = [(gallery.index(image), caption) for image, caption in asked]
    answered, recall = {}, {}
    for mode, config in MODES.items():
        scorer = LogicScorer(run.model, calibration=run.chosen, config=config)
        with progress_bar(mode) as progress:
            answered[mode] = module.measure_choices(choices, scorer, vectors, progress=progress)
        if sought:
            with progress_bar(f"{mode}, R@5") as progress:
                recall[mode] = module.measure_recall(sought, scorer, shown, progress=progress)
    result = {"choices": answered, "recall_at_5": recall}
    run.finish("negbench", module.choices_text(result), result)


@bench.command(epilog="Example: lcse bench retention photos/photos.jsonl")
@label_options
@run_options
def retention(labels: Labels, run: Run) -> None:
    """Check that captions still find their pictures.

    LABELS is JSON lines with captions; the first of each picture looks for it, by plain similarity and in every mode.
    """
    from lcse_plugins.bench.photographs import captions_of
    from lcse_plugins.bench.retention import measure_retention, retention_text

    images, vectors = labels.encoded(run)
    said = captions_of(images.paths, labels.labels, root=labels.images or labels.labels.parent)
    asked = [(texts[0], i) for i, texts in enumerate(said) if texts]
    with progress_bar("asking") as progress:
        result = measure_retention(run.model, vectors, asked, calibration=run.chosen, progress=progress)
    run.finish("retention", retention_text(result), result)


@bench.command(epilog="Example: lcse bench calibrate photos/photos.jsonl --half A")
@label_options
@fitted_mode_option
@run_options
def calibrate(labels: Labels, mode: Mode, run: Run) -> None:
    """Show how quality depends on μ and β.

    Sweeps both by the paper's objective and by retrieval, beside the calibration that needs no labels. To fit one and
    write it to a file, use `lcse calibrate`.
    """
    from lcse_plugins.bench.calibration import sweep_calibration, sweep_text

    images, vectors = labels.encoded(run)
    config = ScoringConfig(mode=mode)
    with progress_bar("sweeping") as progress:
        result = sweep_calibration(run.model, images, vectors, config=config, seed=run.seed, progress=progress)
    run.finish("calibrate", sweep_text(result), {**result, "mode": mode, "half": labels.half})


@bench.command(epilog="Example: lcse bench diagnose photos/photos.jsonl")
@label_options
@run_options
def diagnose(labels: Labels, run: Run) -> None:
    """Show what an encoder makes of and, or and not."""
    from lcse_plugins.bench.diagnose import diagnose as analyse
    from lcse_plugins.bench.diagnose import diagnosis_text

    images, vectors = labels.encoded(run)
    with progress_bar("diagnosing") as progress:
        result = analyse(run.model, images, vectors, calibration=run.chosen, seed=run.seed, progress=progress)
    run.finish("diagnose", diagnosis_text(result), result)


@bench.command(epilog="Example: lcse bench reliability photos/photos.jsonl --half B")
@label_options
@run_options
def reliability(labels: Labels, run: Run) -> None:
    """Check the percentages people are shown.

    Compares them with how often the thing is really there, over all pictures and classes of LABELS.
    """
    from lcse_plugins.bench.calibration import measure_reliability, reliability_rows
    from lcse_plugins.bench.reports import aligned

    images, vectors = labels.encoded(run)
    result = measure_reliability(run.model, images, vectors, calibration=run.chosen)
    run.finish("reliability", aligned(reliability_rows(result)), {**result, "half": labels.half})
