"""`lcse bench retrieval | factor | factor-build | negbench | retention`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lcse_plugins.bench.command_options import (
    Labels,
    Model,
    Run,
    common_options,
    encoder_options,
    label_options,
    used_calibration,
)
from lcse_plugins.cli.options import file_to_write, progress_bar

if TYPE_CHECKING:
    from lcse_plugins.bench.factor import Parses
    from lcse_plugins.scoring.config import ScoringConfig

__all__ = ["factor", "factor_build", "negbench", "retention", "retrieval"]


@click.command(epilog="Example: lcse bench retrieval photos/photos.jsonl --half B --out results")
@label_options
@click.option(
    "--pairs", type=click.IntRange(min=1), default=250, show_default=True, help="Pairs of classes to ask about."
)
@click.option(
    "--fewest",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Answers, and other images, every query has at least.",
)
@click.option("--regions", is_flag=True, help="Also rank with five and with fourteen tiles of every image.")
@encoder_options
@common_options
def retrieval(
    labels: Labels,
    pairs: int,
    fewest: int,
    regions: bool,
    model: Model,
    run: Run,
) -> None:
    """Ask logical queries over LABELS and judge the first ten images, for rivals and for every mode."""
    from lcse_plugins.bench.photographs import region_vectors
    from lcse_plugins.bench.retrieval import draw_questions, measure_retrieval
    from lcse_plugins.bench.rivals import make_rankers
    from lcse_plugins.bench.tables import retrieval_text

    data = labels.encoded(model, run.limit)
    questions = draw_questions(data.images, pairs=pairs, fewest=fewest, seed=run.seed)
    tiles = None
    if regions:
        with progress_bar("encoding regions") as progress:
            tiles = region_vectors(data.encoder, data.images.paths, cache=model.cache, progress=progress)
    with progress_bar("asking") as progress:
        rankers = make_rankers(data.encoder, data.vectors, calibration=data.calibration, regions=tiles)
        report = measure_retrieval(questions, rankers, progress=progress)
    run.finish(
        retrieval_text(report),
        {
            **report.to_json(),
            "half": labels.half,
            "seed": run.seed,
            "calibration": used_calibration(data.encoder, data.calibration),
        },
        name="retrieval",
        encoder_id=data.encoder.encoder_id,
        rows=report.rows(),
    )


@click.command(epilog="Example: lcse bench factor factor_bench.jsonl --images coco")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--images", type=click.Path(path_type=Path), required=True, help="The folder image paths start from.")
@click.option(
    "--parses", type=click.Choice(["oracle", "own"]), default="oracle", show_default=True, help="Whose logic."
)
@click.option("--aggregators", is_flag=True, help="Every aggregator of every mode, not the power mean alone.")
@encoder_options
@common_options
def factor(
    file: Path,
    images: Path,
    parses: Parses,
    aggregators: bool,
    model: Model,
    run: Run,
) -> None:
    """Decide which of two captions is true, for every sample of FILE and every mode."""
    from lcse_plugins.bench.factor import measure_factor
    from lcse_plugins.bench.factor_file import draw_samples, read_factor
    from lcse_plugins.bench.tables import factor_text
    from lcse_plugins.scorer import LogicScorer

    bench_file = read_factor(file)
    samples = draw_samples(bench_file.samples, run.limit, seed=run.seed)
    encoder, chosen = model.open()
    names = sorted({sample.image for sample in samples})
    vectors = dict(zip(names, model.encode(encoder, [images / image for image in names]), strict=True))
    reports = {}
    for mode, config in _configs(aggregators).items():
        with progress_bar(mode) as progress:
            scorer = LogicScorer(encoder, calibration=chosen, config=config)
            reports[mode] = measure_factor(samples, scorer, vectors, parses=parses, progress=progress)
    run.finish(
        factor_text(reports, bench_file),
        {
            "official": bench_file.official,
            "sha256": bench_file.sha256,
            "parses": parses,
            "calibration": used_calibration(encoder, chosen),
            "modes": {mode: report.to_json() for mode, report in reports.items()},
        },
        name="factor",
        encoder_id=encoder.encoder_id,
        rows=[{"mode": mode, "overall": r.overall, **r.accuracy} for mode, r in reports.items()],
    )


@click.command(
    "factor-build", epilog="Example: lcse bench factor-build instances_val2017.json --images val2017 -o f.jsonl"
)
@label_options
@file_to_write("-o", "target", refusal=click.BadParameter, required=True, help="File to write.")
@common_options
def factor_build(
    labels: Labels,
    target: Path,
    run: Run,
) -> None:
    """Write a benchmark of forced choices made from LABELS; --limit bounds the samples of each kind."""
    from collections import Counter

    from lcse_plugins.bench.factor_builder import PUBLISHED_COUNTS, build_factor
    from lcse_plugins.bench.factor_file import write_factor

    counts = {kind: min(count, run.limit or count) for kind, count in PUBLISHED_COUNTS.items()}
    images = labels.read()
    with progress_bar("building") as progress:
        samples = build_factor(images, root=labels.root, seed=run.seed, counts=counts, progress=progress)
    write_factor(samples, target)
    made = dict(Counter(sample.operator for sample in samples))
    text = f"wrote {len(samples)} samples to {target}: " + ", ".join(f"{kind} {count}" for kind, count in made.items())
    run.finish(text, {"samples": len(samples), "kinds": made}, name="factor-build")


@click.command(epilog="Example: lcse bench negbench COCO_val_mcq.csv --images coco")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--images", type=click.Path(path_type=Path), required=True, help="The folder image paths start from.")
@click.option("--retrieval", "captions", type=click.Path(path_type=Path), help="The retrieval file, for R@5.")
@encoder_options
@common_options
def negbench(
    file: Path,
    images: Path,
    captions: Path | None,
    model: Model,
    run: Run,
) -> None:
    """Answer the multiple-choice questions of FILE, and find images by captions that negate."""
    import numpy as np

    from lcse_plugins.bench.negbench import measure_choices, measure_recall, read_choices, read_retrieval_captions
    from lcse_plugins.bench.tables import choices_text
    from lcse_plugins.scorer import LogicScorer

    choices = read_choices(file)[: run.limit]
    asked = [] if captions is None else read_retrieval_captions(captions)[: run.limit]
    gallery = sorted({image for image, _ in asked})
    names = sorted({choice.image for choice in choices} | set(gallery))
    encoder, chosen = model.open()
    rows = model.encode(encoder, [images / image for image in names])
    vectors, place = dict(zip(names, rows, strict=True)), {image: i for i, image in enumerate(gallery)}
    shown = np.array([vectors[image] for image in gallery])
    sought = [(place[image], caption) for image, caption in asked]
    reports, recall = {}, {}
    for mode, config in _configs(aggregators=False).items():
        scorer = LogicScorer(encoder, calibration=chosen, config=config)
        with progress_bar(mode) as progress:
            reports[mode] = measure_choices(choices, scorer, vectors, progress=progress)
        if captions is not None:
            with progress_bar(f"{mode}, R@5") as progress:
                recall[mode] = measure_recall(sought, scorer, shown, progress=progress)
    run.finish(
        choices_text(reports, recall),
        {
            "calibration": used_calibration(encoder, chosen),
            "choices": {mode: r.to_json() for mode, r in reports.items()},
            "recall_at_5": recall,
        },
        name="negbench",
        encoder_id=encoder.encoder_id,
    )


@click.command(epilog="Example: lcse bench retention photos/photos.jsonl")
@label_options
@click.option("--captions", type=click.Path(path_type=Path), help="COCO captions or JSON lines; by default LABELS.")
@click.option(
    "--per-image", type=click.IntRange(min=1), default=1, show_default=True, help="Captions of each image to ask with."
)
@encoder_options
@common_options
def retention(
    labels: Labels,
    captions: Path | None,
    per_image: int,
    model: Model,
    run: Run,
) -> None:
    """Find images by their captions, with plain similarity and with every mode."""
    from lcse_plugins.bench.photographs import captions_of
    from lcse_plugins.bench.retention import measure_retention
    from lcse_plugins.bench.tables import retention_text

    data = labels.encoded(model, run.limit)
    said = captions_of(data.images.paths, captions or labels.labels, root=labels.root)
    asked = [(caption, i) for i, texts in enumerate(said) for caption in texts[:per_image]]
    with progress_bar("asking") as progress:
        report = measure_retention(data.encoder, data.vectors, asked, calibration=data.calibration, progress=progress)
    run.finish(
        retention_text(report),
        {**report.to_json(), "calibration": used_calibration(data.encoder, data.calibration)},
        name="retention",
        encoder_id=data.encoder.encoder_id,
    )


def _configs(aggregators: bool) -> dict[str, ScoringConfig]:
    from dataclasses import replace

    from lcse_plugins.bench.rivals import MODES
    from lcse_plugins.scoring.config import DEFAULT_CONFIG

    configs = dict(MODES)
    if aggregators:
        for name, config in MODES.items():
            if config.mode != "holistic" and config.aggregator == DEFAULT_CONFIG.aggregator:
                configs[f"{name}, minmax"] = replace(config, aggregator="minmax")
                configs[f"{name}, probabilistic"] = replace(config, aggregator="probabilistic")
    return configs
