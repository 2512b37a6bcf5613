"""`lcse encoders`: what can encode."""

from __future__ import annotations

from dataclasses import asdict

import click

from lcse_plugins.cli.options import json_option, print_json

__all__ = ["encoders"]


@click.command(epilog="Example: lcse encoders --json")
@json_option
def encoders(as_json: bool) -> None:
    """List the encoders, what they are, and how to install what they need."""
    from lcse_plugins.encoders.registry import available_encoders

    listings = available_encoders()
    if as_json:
        for listing in listings:
            print_json(asdict(listing))
        return
    width = max(len(listing.name) for listing in listings)
    for listing in listings:
        state = "" if listing.installed else click.style(f'  pip install "lcse-plugins[{listing.extra}]"', fg="yellow")
        click.echo(f"{listing.name:<{width}}  {listing.summary}{state}")
