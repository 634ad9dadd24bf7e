"""A conversation with a language model: what was said so far, as the tokens that the next answer continues."""

from __future__ import annotations

from typing import Protocol, TypeAlias, runtime_checkable

from assay.language.tokens import Tokenizer

Message: TypeAlias = dict[str, str]
"""Who speaks (`role`: "system", "user" or "assistant") and what is said (`content`)."""


@runtime_checkable
class ChatTemplate(Protocol):
    """What a tokenizer has, too, whose model was trained on conversations."""

    chat_template: str
    """How messages become text; empty for none."""

    def chat_text(self, messages: list[Message], *, is_open: bool = False) -> str:
        """Messages as the text that the model continues: with its answer, or where `is_open` within the last one."""


class Conversation:
    r"""What a user and a model said so far.

    With a chat template, messages have roles as the model was trained on. Without one, all that was said is one text,
    which the model continues; each of its answers ends a line.

    Args:
        tokenizer: makes tokens of text; has a chat template where it is also a `ChatTemplate`.
        system: what the model is told before all else.

    Example:
        >>> from assay.language.tokens import ByteTokenizer
        >>> conversation = Conversation(ByteTokenizer())
        >>> conversation.add("ab", "cd")
        >>> bytes(conversation.prompt("ef"))
        b'abcd\nef'
    """

    def __init__(self, tokenizer: Tokenizer, system: str = "") -> None:
        self._tokenizer, self._system = tokenizer, system
        self._template = tokenizer if isinstance(tokenizer, ChatTemplate) and tokenizer.chat_template else None
        self.clear()

    @property
    def has_template(self) -> bool:
        """Whether messages have roles."""
        return self._template is not None

    def clear(self) -> None:
        """Forget all but what the model is told before all else."""
        self._messages: list[Message] = [{"role": "system", "content": self._system}] if self._system else []

    def prompt(self, text: str) -> list[int]:
        """The tokens that the model continues with its answer to a text; nothing is added yet.

        Raises:
            ConfigError: the chat template does not take such messages.
        """
        messages = [*self._messages, {"role": "user", "content": text}]
        if self._template is not None:
            return self._tokenizer.encode(self._template.chat_text(messages))
        parts = [each["content"] + "\n" * (each["role"] != "user") for each in messages]
        return [*self._tokenizer.start, *self._tokenizer.encode("".join(parts))]

    def add(self, text: str, answer: str) -> None:
        """Add a text and the answer to it."""
        self._messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]
