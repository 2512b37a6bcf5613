"""`lcse bench`: measure an encoder or a mode on your own images, and keep the figures with their command."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import click

from lcse_plugins.cli.options import encoder_option, json_option, load, print_json, progress_bar
from lcse_plugins.errors import InvalidOption
from lcse_plugins.scoring.config import DEFAULT_CONFIG, Mode, ScoringConfig

if TYPE_CHECKING:
    from lcse_plugins.bench.factor import Parses
    from lcse_plugins.bench.photographs import Half
    from lcse_plugins.bench.remembering import RememberingEncoder
    from lcse_plugins.calibrating.labelled import LabelledImages
    from lcse_plugins.encoders.protocol import FloatArray
    from lcse_plugins.scoring.calibration import Calibration

__all__ = ["bench"]

Command: TypeAlias = Callable[..., None]
existing = click.Path(path_type=Path)


@click.group(epilog="Example: lcse bench retrieval photos/photos.jsonl --half B")
def bench() -> None:
    """Measure quality on labelled images; every figure can be kept with the command that made it."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """What every benchmark is asked for, and where its figures go."""

    as_json: bool
    seed: int
    limit: int | None
    out: Path | None
    name: str | None

    def finish(
        self,
        text: str,
        result: Mapping[str, Any],
        *,
        name: str,
        encoder_id: str,
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Print what was found, and keep it where that was asked for: under `name` unless another was given."""
        from lcse_plugins.bench.reports import finite_json, write_result

        if self.as_json:
            print_json(finite_json(result))
        else:
            click.echo(text)
        if self.out is not None:
            path = write_result(self.out, self.name or name, result, encoder_id=encoder_id, rows=rows)
            click.echo(f"kept in {path}", err=True)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Which encoder and calibration to measure with."""

    encoder: str
    calibration: Path | None
    mu: float | None
    beta: float | None
    cache: Path | None

    def open(self) -> tuple[RememberingEncoder, Calibration | None]:
        """The encoder, and the calibration that the options give; None for its preset."""
        from lcse_plugins.bench.remembering import RememberingEncoder
        from lcse_plugins.scoring.calibration import Calibration

        if (self.mu is None) != (self.beta is None):
            raise click.UsageError("--mu and --beta go together")
        if self.mu is not None and self.calibration is not None:
            raise click.UsageError("give --calibration, or --mu and --beta, not both")
        encoder = RememberingEncoder(load(self.encoder))
        if self.mu is not None and self.beta is not None:
            return encoder, Calibration(mu=self.mu, beta=self.beta, encoder_id=encoder.encoder_id)
        return encoder, None if self.calibration is None else Calibration.load(self.calibration)

    def encode(self, encoder: RememberingEncoder, paths: Sequence[Path]) -> FloatArray:
        """(n, d) vectors of pictures, with a progress bar."""
        from lcse_plugins.bench.photographs import image_vectors

        with progress_bar("encoding") as progress:
            return image_vectors(encoder, paths, cache=self.cache, progress=progress)


@dataclass(frozen=True, eq=False)
class LabelledVectors:
    """Labelled images, the encoder that reads texts for them, their vectors, and the calibration to use."""

    images: LabelledImages
    encoder: RememberingEncoder
    vectors: FloatArray
    calibration: Calibration | None

    @property
    def used_calibration(self) -> dict[str, Any] | None:
        """μ and β that were measured with, as JSON values: those chosen, or the encoder's preset."""
        return _used_calibration(self.encoder, self.calibration)


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Which labelled images to measure on."""

    labels: Path
    images: Path | None
    half: Half | None

    def encoded(self, model: Model, limit: int | None) -> LabelledVectors:
        """The images of the half that was asked for, at most `limit`, with their vectors."""
        from lcse_plugins.bench.photographs import half_of, take_images
        from lcse_plugins.calibrating.labelled import read_labels

        labelled = read_labels(self.labels, images=self.images)
        if self.half is not None:
            labelled = take_images(labelled, half_of(labelled, self.half))
        if not len(labelled):
            raise InvalidOption(f"half {self.half} of {self.labels} holds no pictures")
        labelled = take_images(labelled, range(min(limit or len(labelled), len(labelled))))
        encoder, chosen = model.open()
        return LabelledVectors(labelled, encoder, model.encode(encoder, labelled.paths), chosen)


def _used_calibration(encoder: RememberingEncoder, chosen: Calibration | None) -> dict[str, Any] | None:
    used = chosen or encoder.calibration
    return None if used is None else used.to_json()


def _bundled(name: str, kind: type[Any], *options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Options that reach a command as one argument of that kind."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def called(**given: Any) -> None:
            own = {field.name: given.pop(field.name) for field in fields(kind)}
            command(**given, **{name: kind(**own)})

        for option in options:
            called = option(called)
        return called

    return decorate


common_options = _bundled(
    "run",
    Run,
    json_option,
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of every draw."),
    click.option("--limit", type=click.IntRange(min=1), help="Only this many items, for a quick look."),
    click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Keep the figures in this folder."),
    click.option("--name", help="Under this name."),
)
encoder_options = _bundled(
    "model",
    Model,
    encoder_option,
    click.option("--calibration", type=existing, metavar="FILE", help="μ and β, as JSON."),
    click.option("--mu", type=float, help="μ, with --beta."),
    click.option("--beta", type=float, help="β, with --mu."),
    click.option("--cache", type=click.Path(path_type=Path, file_okay=False), help="Keep image vectors here."),
)
label_options = _bundled(
    "labels",
    Labels,
    click.argument("labels", type=existing),
    click.option("--images", type=existing, help="Where pictures are; by default beside LABELS."),
    click.option("--half", type=click.Choice(["A", "B"]), help="Only one of two fixed halves: tune on A, report B."),
)
image_folder = click.option("--images", type=existing, required=True, help="The folder image paths start from.")


def _pairs_option(default: int) -> Callable[[Command], Command]:
    return click.option(
        "--pairs", type=click.IntRange(min=1), default=default, show_default=True, help="Pairs of classes to ask about."
    )


@bench.command(epilog="Example: lcse bench retrieval photos/photos.jsonl --half B --out results")
@label_options
@_pairs_option(250)
@click.option(
    "--fewest",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Answers, and other images, every query has at least.",
)
@click.option("--tiles", is_flag=True, help="Also rank with five tiles of every image.")
@encoder_options
@common_options
def retrieval(labels: Labels, pairs: int, fewest: int, tiles: bool, model: Model, run: Run) -> None:
    """Ask logical queries over LABELS and judge the first ten images, for rivals and for every mode."""
    from lcse_plugins.bench.photographs import tile_vectors
    from lcse_plugins.bench.retrieval import draw_questions, measure_retrieval
    from lcse_plugins.bench.rivals import make_rankers

    data = labels.encoded(model, run.limit)
    questions = draw_questions(data.images, pairs=pairs, fewest=fewest, seed=run.seed)
    parts = None
    if tiles:
        with progress_bar("encoding tiles") as progress:
            parts = tile_vectors(data.encoder, data.images.paths, cache=model.cache, progress=progress)
    with progress_bar("asking") as progress:
        rankers = make_rankers(data.encoder, data.vectors, calibration=data.calibration, tiles=parts)
        report = measure_retrieval(questions, rankers, progress=progress)
    result = {**report.to_json(), "half": labels.half, "seed": run.seed, "calibration": data.used_calibration}
    run.finish(report.to_text(), result, name="retrieval", encoder_id=data.encoder.encoder_id, rows=report.rows())


@bench.command(epilog="Example: lcse bench factor factor_bench.jsonl --images coco")
@click.argument("file", type=existing)
@image_folder
@click.option(
    "--parses", type=click.Choice(["oracle", "own"]), default="oracle", show_default=True, help="Whose logic."
)
@encoder_options
@common_options
def factor(file: Path, images: Path, parses: Parses, model: Model, run: Run) -> None:
    """Decide which of two captions is true, for every sample of FILE and every mode."""
    from lcse_plugins.bench.factor import factor_text, measure_factor
    from lcse_plugins.bench.factor_file import draw_samples, read_factor
    from lcse_plugins.bench.rivals import MODES
    from lcse_plugins.scorer import LogicScorer

    bench_file = read_factor(file)
    samples = draw_samples(bench_file.samples, run.limit, seed=run.seed)
    encoder, chosen = model.open()
    names = sorted({sample.image for sample in samples})
    vectors = dict(zip(names, model.encode(encoder, [images / image for image in names]), strict=True))
    reports = {}
    for mode, config in MODES.items():
        with progress_bar(mode) as progress:
            scorer = LogicScorer(encoder, calibration=chosen, config=config)
            reports[mode] = measure_factor(samples, scorer, vectors, parses=parses, progress=progress)
    result = {
        "official": bench_file.official,
        "sha256": bench_file.sha256,
        "parses": parses,
        "calibration": _used_calibration(encoder, chosen),
        "modes": {mode: report.to_json() for mode, report in reports.items()},
    }
    rows = [{"mode": mode, "overall": r.overall, **r.accuracy} for mode, r in reports.items()]
    run.finish(factor_text(reports, bench_file), result, name="factor", encoder_id=encoder.encoder_id, rows=rows)


@bench.command(epilog="Example: lcse bench negbench COCO_val_mcq.csv --images coco")
@click.argument("file", type=existing)
@image_folder
@click.option("--retrieval", "captions", type=existing, help="The retrieval file, for R@5.")
@encoder_options
@common_options
def negbench(file: Path, images: Path, captions: Path | None, model: Model, run: Run) -> None:
    """Answer the multiple-choice questions of FILE, and find images by captions that negate."""
    import numpy as np

    from lcse_plugins.bench import negbench as module
    from lcse_plugins.bench.rivals import MODES
    from lcse_plugins.scorer import LogicScorer

    choices = module.read_choices(file)[: run.limit]
    asked = [] if captions is None else module.read_retrieval_captions(captions)[: run.limit]
    gallery = sorted({image for image, _ in asked})
    names = sorted({choice.image for choice in choices} | set(gallery))
    encoder, chosen = model.open()
    rows = model.encode(encoder, [images / image for image in names])
    vectors, place = dict(zip(names, rows, strict=True)), {image: i for i, image in enumerate(gallery)}
    shown = np.array([vectors[image] for image in gallery])
    sought = [(place[image], caption) for image, caption in asked]
    reports, recall = {}, {}
    for mode, config in MODES.items():
        scorer = LogicScorer(encoder, calibration=chosen, config=config)
        with progress_bar(mode) as progress:
            reports[mode] = module.measure_choices(choices, scorer, vectors, progress=progress)
        if captions is not None:
            with progress_bar(f"{mode}, R@5") as progress:
                recall[mode] = module.measure_recall(sought, scorer, shown, progress=progress)
    result = {
        "calibration": _used_calibration(encoder, chosen),
        "choices": {mode: report.to_json() for mode, report in reports.items()},
        "recall_at_5": recall,
    }
    run.finish(module.choices_text(reports, recall), result, name="negbench", encoder_id=encoder.encoder_id)


@bench.command(epilog="Example: lcse bench retention photos/photos.jsonl")
@label_options
@click.option("--captions", type=existing, help="COCO captions or JSON lines; by default LABELS.")
@click.option(
    "--per-image", type=click.IntRange(min=1), default=1, show_default=True, help="Captions of each image to ask with."
)
@encoder_options
@common_options
def retention(labels: Labels, captions: Path | None, per_image: int, model: Model, run: Run) -> None:
    """Find images by their captions, with plain similarity and with every mode."""
    from lcse_plugins.bench.photographs import captions_of
    from lcse_plugins.bench.retention import measure_retention

    data = labels.encoded(model, run.limit)
    said = captions_of(data.images.paths, captions or labels.labels, root=labels.images or labels.labels.parent)
    asked = [(caption, i) for i, texts in enumerate(said) for caption in texts[:per_image]]
    with progress_bar("asking") as progress:
        report = measure_retention(data.encoder, data.vectors, asked, calibration=data.calibration, progress=progress)
    result = {**report.to_json(), "calibration": data.used_calibration}
    run.finish(report.to_text(), result, name="retention", encoder_id=data.encoder.encoder_id)


@bench.command(epilog="Example: lcse bench calibrate photos/photos.jsonl --half A")
@label_options
@click.option(
    "--mode",
    type=click.Choice([mode for mode in get_args(Mode) if mode != "holistic"]),  # which uses neither μ nor β
    default=DEFAULT_CONFIG.mode,
    show_default=True,
    help="To fit for.",
)
@encoder_options
@common_options
def calibrate(labels: Labels, mode: Mode, model: Model, run: Run) -> None:
    """Sweep μ and β over LABELS by the paper's objective and by retrieval, and compare with no labels at all."""
    from lcse_plugins.bench.calibration import sweep_calibration

    data = labels.encoded(model, run.limit)
    config = ScoringConfig(mode=mode)
    with progress_bar("sweeping") as progress:
        sweep = sweep_calibration(
            data.encoder, data.images, data.vectors, config=config, seed=run.seed, progress=progress
        )
    result = {**sweep.to_json(), "mode": mode, "half": labels.half}
    run.finish(sweep.to_text(), result, name="calibrate", encoder_id=data.encoder.encoder_id)


@bench.command(epilog="Example: lcse bench diagnose photos/photos.jsonl")
@label_options
@_pairs_option(60)
@encoder_options
@common_options
def diagnose(labels: Labels, pairs: int, model: Model, run: Run) -> None:
    """Show what an encoder makes of operators, over LABELS."""
    from lcse_plugins.bench.diagnose import diagnose as analyse

    data = labels.encoded(model, run.limit)
    with progress_bar("diagnosing") as progress:
        found = analyse(
            data.encoder,
            data.images,
            data.vectors,
            calibration=data.calibration,
            pairs=pairs,
            seed=run.seed,
            progress=progress,
        )
    result = {**found.to_json(), "calibration": data.used_calibration}
    run.finish(found.to_text(), result, name="diagnose", encoder_id=data.encoder.encoder_id)


@bench.command(epilog="Example: lcse bench reliability photos/photos.jsonl --half B")
@label_options
@encoder_options
@common_options
def reliability(labels: Labels, model: Model, run: Run) -> None:
    """Compare the percentages people are shown with how often the thing is there, over LABELS."""
    from lcse_plugins.bench.reliability import measure_reliability, reliability_text

    data = labels.encoded(model, run.limit)
    bands = measure_reliability(data.encoder, data.images, data.vectors, calibration=data.calibration)
    rows = [band.to_json() for band in bands]
    result = {"bands": rows, "half": labels.half, "calibration": data.used_calibration}
    run.finish(reliability_text(bands), result, name="reliability", encoder_id=data.encoder.encoder_id, rows=rows)
