"""``assay chat``: a conversation with a language model in the terminal, its answers as they come."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from assay.cli.declaration import same_named
from assay.cli.language_shown import readable
from assay.cli.loaders.models import model_of
from assay.cli.loaders.texts import tokenizer_of
from assay.cli.options.language_models import ChatCommand
from assay.language import ByteTokenizer, Conversation, Tokenizer, generate
from assay.language.causal import positions_of

CLEAR = "/clear"


def run(options: ChatCommand) -> None:
    """Answer line by line until the input ends."""
    named = model_of(options)
    tokenizer = tokenizer_of(named) or ByteTokenizer()
    conversation = Conversation(tokenizer, options.system)
    if not conversation.has_template:
        _note(f"{named.name} has no chat template: the model continues the text of the whole conversation.")
    _note(f"Ctrl-C stops an answer, {CLEAR} forgets the conversation, Ctrl-D ends it.")
    while (line := _read()) is not None:
        if line == CLEAR:
            conversation.clear()
        elif line:
            _answer(line, conversation, named.model, tokenizer, options)


def _answer(
    line: str, conversation: Conversation, model: Callable[..., Any], tokenizer: Tokenizer, options: ChatCommand
) -> None:
    """Print the answer to a line as it comes, and add both to the conversation."""
    ids, positions, count = conversation.prompt(line), positions_of(model), options.max_new_tokens
    if positions is not None and len(ids) >= positions:
        _note(f"{len(ids)} tokens are more than the model can continue, which holds {positions}: {CLEAR} forgets them.")
        return
    count = count if positions is None else min(count, positions - len(ids))
    answer = Answer()
    how = same_named(generate, options, max_new_tokens=count, tokenizer=tokenizer, watch=answer.show)
    try:
        answer.finish(generate(model, ids, **how).text)
    except KeyboardInterrupt:
        answer.is_stopped = True
    print(flush=True)
    conversation.add(line, answer.text)
    _note(answer.cost())


@dataclass
class Answer:
    """An answer as it comes.

    Attributes:
        text: what was printed.
        times: when each token came, in seconds.
        is_stopped: whether the user stopped it.
    """

    text: str = ""
    times: list[float] = field(default_factory=list)
    is_stopped: bool = False

    def show(self, text: str) -> None:
        """Print what is new of the text so far; half a character waits for its other bytes."""
        self.times.append(time.perf_counter())
        self.finish(text.rstrip("\ufffd"))

    def finish(self, text: str) -> None:
        """Print what is new of the text."""
        print(readable(text[len(self.text) :]), end="", flush=True)
        self.text = text

    def cost(self) -> str:
        """How many tokens came, and how fast after the first."""
        count = len(self.times)
        seconds = self.times[-1] - self.times[0] if count > 1 else 0.0
        rate = [f"{(count - 1) / seconds:,.1f} a second"] if seconds else []
        return ", ".join([f"{count} tokens", *rate, *["stopped"] * self.is_stopped])


def _read() -> str | None:
    """The next line of the user, empty where Ctrl-C threw it away; None at the end. What is no UTF-8 is replaced."""
    try:
        line = input("> " if sys.stdin.isatty() else "").strip()
        return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except KeyboardInterrupt:
        print()
        return ""
    except EOFError:
        return None


def _note(text: str) -> None:
    """A line that no model said, on the error stream."""
    print(f"[{text}]", file=sys.stderr, flush=True)
