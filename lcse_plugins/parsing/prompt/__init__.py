"""What the language model is told: rules and worked examples, kept as data beside this file.

`rules.md` says what the reply must be, `examples.jsonl` shows it: one query a line with its kind and its tree, written
as `"concept"` or `["and" | "or" | "plain" | "not", …]`. The version is taken from the content, so that an edited
prompt never meets replies that another one earned.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import chain, zip_longest
from typing import Any

from lcse_plugins.errors import InvalidOption, QueryError
from lcse_plugins.query import GROUPS, Concept, Not, Query, to_json

__all__ = ["Example", "Message", "Prompt", "load_prompt"]

Message = dict[str, str]
"""`{"role": "system" | "user" | "assistant", "content": …}`: what OpenAI's client and LangChain both take."""


@dataclass(frozen=True)
class Example:
    """A query and the tree it means; `kind` names what it teaches."""

    kind: str
    query: str
    tree: Query


@dataclass(frozen=True)
class Prompt:
    """Rules and examples, and the messages made of them."""

    rules: str
    examples: tuple[Example, ...]

    @cached_property
    def version(self) -> str:
        """A short name of exactly this content."""
        content = [self.rules, *([example.query, to_json(example.tree)] for example in self.examples)]
        return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @cached_property
    def system(self) -> str:
        """Rules and examples as one text; it never changes between queries, so that servers can keep it ready."""
        from lcse_plugins.parsing.llm.schema import encode

        shown = [f"{ask(example.query)}\n{encode(example.tree)}" for example in self.examples]
        return "\n\n".join([self.rules.strip(), *(["Examples"] if shown else []), *shown])

    def messages(self, text: str, *, rejected: str | None = None, complaint: str | None = None) -> list[Message]:
        """The conversation that asks for the tree of `text`, again if an earlier reply was rejected."""
        messages = [{"role": "system", "content": self.system}, {"role": "user", "content": ask(text)}]
        if complaint is not None:
            if rejected:
                messages.append({"role": "assistant", "content": rejected[:4000]})
            messages.append({"role": "user", "content": ask_again(complaint)})
        return messages


def ask(text: str) -> str:
    """The query as a JSON string, so that its end cannot be forged from inside."""
    return f"Query: {json.dumps(text, ensure_ascii=False)}"


def ask_again(complaint: str) -> str:
    """What is said about a reply that could not be used."""
    return f"That reply cannot be used: {complaint}. Reply again to the same query, with the JSON object only."


def load_prompt(*, examples: int | None = None) -> Prompt:
    """The prompt that comes with the package.

    Args:
        examples: How many of the examples to show, taken in turn from every kind; all by default. The whole prompt
            takes about nine thousand tokens, which is more than some small models can read.
    """
    rules, known = _shipped()
    if examples is None:
        return Prompt(rules, known)
    if not 0 <= examples <= len(known):
        raise InvalidOption(f"examples is 0 to {len(known)}, not {examples}")
    by_kind: dict[str, list[Example]] = defaultdict(list)
    for example in known:
        by_kind[example.kind].append(example)
    in_turn = [example for example in chain.from_iterable(zip_longest(*by_kind.values())) if example is not None]
    return Prompt(rules, tuple(in_turn[:examples]))


@lru_cache(maxsize=1)
def _shipped() -> tuple[str, tuple[Example, ...]]:
    folder = files(__name__)
    lines = folder.joinpath("examples.jsonl").read_text(encoding="utf-8").splitlines()
    examples = tuple(
        Example(row["kind"], row["query"], _tree(row["tree"])) for row in map(json.loads, filter(str.strip, lines))
    )
    return folder.joinpath("rules.md").read_text(encoding="utf-8"), examples


def _tree(data: Any) -> Query:
    match data:
        case str():
            return Concept(data)
        case ["not", child]:
            return Not(_tree(child))
        case ["and" | "or" | "plain" as op, *children] if len(children) > 1:
            return GROUPS[op](tuple(map(_tree, children)))
    raise QueryError(f"an example's tree is a text or [op, …], not {data!r}")
