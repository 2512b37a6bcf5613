"""`lcse serve`: the page to search with, on this machine only."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lcse_plugins.cli.options import make_scorer, printable, scoring_options

if TYPE_CHECKING:
    from lcse_plugins.cli.page.app import PageState
    from lcse_plugins.scorer import LogicScorer

__all__ = ["serve"]

HOST = "127.0.0.1"
PORT = 8765
EXAMPLES = ["a dog and no person", "a kitchen without people", "a bus or a train", "neither a person nor an animal"]


@click.command(epilog="Example: lcse serve ~/Pictures")
@click.argument("folders", metavar="[FOLDER...]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="Where the index goes; by default a cache folder.")
@click.option("--qdrant", metavar="URL", help="Search a Qdrant server instead, such as http://localhost:6333.")
@click.option("--collection", metavar="NAME", help="The collection of that server.")
@click.option("--vector", metavar="NAME", help="Its vectors, where it names them.")
@click.option("--pictures", type=click.Path(path_type=Path), help="The folder its pictures must lie in.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"By default {PORT}, or any that is free.")
@click.option("--open/--no-open", "browse", default=None, help="Open the page in a browser; by default at a terminal.")
@scoring_options
def serve(
    folders: tuple[Path, ...],
    out: Path | None,
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
    from lcse_plugins.cli.page.app import PageState, make_app
    from lcse_plugins.images.gallery import demo_photos

    if (qdrant is None) != (collection is None) or (qdrant is not None and folders):
        raise click.UsageError("give a FOLDER, or --qdrant with --collection")
    scorer = make_scorer(**scoring)
    if qdrant is not None:
        state = PageState(title=f"{collection} on {qdrant.rpartition('@')[2]}")
        _connect(state, qdrant, collection or "", scorer, vector, pictures)
    else:
        title = ", ".join(map(printable, folders)) or "the bundled photographs"
        state = PageState(title=title, busy=True, examples=[] if folders else EXAMPLES)
        chosen = folders or (demo_photos()[0].parent,)
        threading.Thread(target=_index, args=(state, chosen, out, scorer), daemon=True).start()
    with _bound(port) as listener:
        token = secrets.token_urlsafe(24)
        address = f"http://{HOST}:{listener.getsockname()[1]}/{token}/"
        click.echo(f"Search {state.title} at\n\n    {address}\n\nCtrl-C ends it.")
        if sys.stdout.isatty() if browse is None else browse:
            threading.Timer(0.5, webbrowser.open, [address]).start()
        _run(make_app(state, scorer, token=token), listener)


def _bound(port: int | None) -> socket.socket:
    """A socket on this machine's own address; the usual port if it is free, else any."""
    from lcse_plugins.errors import InvalidOption

    for wanted in (PORT, 0) if port is None else (port,):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, wanted))
            listener.listen()  # who asks before the server runs waits a little
            return listener
        except OSError as error:
            listener.close()
            if wanted == port:
                raise InvalidOption(f"port {port} cannot be used: {error.strerror}; leave --port out") from error
    raise InvalidOption("no port is free")


def _run(app: Any, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


def _index(state: PageState, folders: tuple[Path, ...], out: Path | None, scorer: LogicScorer) -> None:
    """Search what is indexed already; bring the index up to date; search that."""
    from lcse_plugins.cli.page.collections import FolderCollection
    from lcse_plugins.errors import LcseError
    from lcse_plugins.index import ImageIndex, cache_place, is_index

    def progress(done: int, total: int) -> None:
        state.done, state.total = done, total

    def put() -> None:
        state.put(FolderCollection(ImageIndex.open(place, encoder=scorer.encoder), title=state.title))

    try:
        ready = len(folders) == 1 and is_index(folders[0])
        place = folders[0] if ready else out or cache_place(folders, scorer.encoder)
        if is_index(place):
            put()
        if not ready:
            report = ImageIndex.build(folders, place, encoder=scorer.encoder, progress=progress)
            if state.collection is None or report.added or report.updated or report.removed:
                put()
            notes = [report.note or ""]
            if report.broken:
                notes.append(f"{len(report.broken)} files could not be read, such as {report.broken[0]}.")
            state.message = " ".join(filter(None, notes))
    except (LcseError, OSError) as error:
        state.message = f"Indexing stopped: {error}"
    finally:
        state.busy = False


def _connect(
    state: PageState, url: str, collection: str, scorer: LogicScorer, vector: str | None, pictures: Path | None
) -> None:
    from lcse_plugins.cli.page.collections import QdrantCollection
    from lcse_plugins.errors import MissingExtra

    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise MissingExtra("lcse serve --qdrant", "qdrant") from error
    client = QdrantClient(url)
    state.put(QdrantCollection(client, collection, scorer, vector_name=vector, pictures=pictures))
