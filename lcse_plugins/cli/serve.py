"""`lcse serve`: the page to search with, on this machine only."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from lcse_plugins.cli.options import make_scorer, printable, scoring_options
from lcse_plugins.cli.page.app import PageState, make_app
from lcse_plugins.cli.page.collections import FolderCollection, QdrantCollection
from lcse_plugins.errors import InvalidOption, LcseError, MissingExtra
from lcse_plugins.images.gallery import demo_photos
from lcse_plugins.index import ImageIndex, cache_place, is_index
from lcse_plugins.scorer import LogicScorer

HOST = "127.0.0.1"
PORT = 8765
EXAMPLES = ["a dog and no person", "a kitchen without people", "a bus or a train", "neither a person nor an animal"]


@click.command(epilog="Example: lcse serve ~/Pictures")
@click.argument("folders", metavar="[FOLDER...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--qdrant", metavar="URL", help="Search a Qdrant server instead, such as http://localhost:6333.")
@click.option("--collection", metavar="NAME", help="The collection of that server.")
@click.option("--vector", metavar="NAME", help="Its vectors, where it names them.")
@click.option("--pictures", type=click.Path(path_type=Path), help="Read its pictures from this folder only.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"By default {PORT}, or any that is free.")
@click.option("--open/--no-open", "browse", default=None, help="Open it in a browser; by default if run at a terminal.")
@scoring_options
def serve(
    folders: tuple[Path, ...],
    qdrant: str | None,
    collection: str | None,
    vector: str | None,
    pictures: Path | None,
    port: int | None,
    browse: bool | None,
    **scoring: Any,
) -> None:
    """Open a page to search the pictures in each FOLDER; they are indexed first if need be.

    Without FOLDER the page searches the photographs that come with this package. It can be reached from this machine
    only, by the address that is printed. Ctrl-C ends it.
    """
    if (qdrant is None) != (collection is None) or (qdrant is not None and folders):
        raise click.UsageError("give a FOLDER, or --qdrant with --collection")
    scorer = make_scorer(**scoring)
    if qdrant is not None and collection is not None:
        state = PageState(title=f"{collection} on {qdrant.rpartition('@')[2]}")
        state.put(_connected(qdrant, collection, scorer, vector, pictures))
    else:
        title = ", ".join(map(printable, folders)) or "the bundled photographs"
        state = PageState(title=title, busy=True, examples=[] if folders else EXAMPLES)
        chosen = folders or (demo_photos()[0].parent,)
        threading.Thread(target=_index, args=(state, chosen, scorer), daemon=True).start()
    with _bound(port) as listener:
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{listener.getsockname()[1]}/{token}/"
        click.echo(f"Search {state.title} at\n\n    {address}\n\nCtrl-C ends it.")
        if sys.stdout.isatty() if browse is None else browse:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        with suppress(KeyboardInterrupt):
            _run(make_app(state, scorer, token=token), listener)


def _bound(port: int | None) -> socket.socket:
    """A socket on this machine's own address; the usual port if it is free, else any."""
    try:
        return socket.create_server((HOST, PORT if port is None else port))
    except OSError as error:
        if port is None:
            return socket.create_server((HOST, 0))
        raise InvalidOption(f"port {port} cannot be used: {error.strerror}; leave --port out") from error


def _run(app: Any, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


def _index(state: PageState, folders: Sequence[Path], scorer: LogicScorer) -> None:
    """Search what is indexed already; bring the index up to date; search that."""

    def progress(done: int, total: int) -> None:
        state.done, state.total = done, total

    def put(place: Path) -> None:
        state.put(FolderCollection(ImageIndex.open(place, encoder=scorer.encoder)))

    try:
        if len(folders) == 1 and is_index(folders[0]):
            put(folders[0])
            return
        place = cache_place(folders, scorer.encoder)
        if is_index(place):
            put(place)
        report = ImageIndex.build(folders, place, encoder=scorer.encoder, progress=progress)
        if state.collection is None or report.added or report.updated or report.removed:
            put(place)
        notes = [report.note or ""]
        if report.broken:
            notes.append(f"{len(report.broken)} files could not be read, such as {report.broken[0]}.")
        state.message = " ".join(filter(None, notes))
    except (LcseError, OSError) as error:
        state.message = f"Indexing stopped: {error}"
    finally:
        state.busy = False


def _connected(
    url: str, collection: str, scorer: LogicScorer, vector: str | None, pictures: Path | None
) -> QdrantCollection:
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise MissingExtra("lcse serve --qdrant", "qdrant") from error
    return QdrantCollection(QdrantClient(url), collection, scorer, vector_name=vector, pictures=pictures)
