"""Token strips as data: a stretch of a text, and what each of its tokens cost a language model."""

from __future__ import annotations

from assay._records import Record
from assay.errors import ShapeError, describe

UNLIKELY, VERY_UNLIKELY = 3.0, 6.0
"""Losses in nats from which on a token is marked where nothing can be shaded: probabilities of 5 % and 0.25 %."""
DARKEST = 8.0
"""The loss in nats that is shaded most."""
_NAMED = 5


class TokenStrip(Record):
    """A stretch of a text in pieces, mostly one a token; tokens that are one character together are one piece.

    Args:
        id: which sample it is a part of.
        pieces: the text.
        losses: of each piece in nats, summed over its tokens.
        mean: the loss of the sample, in nats per token.

    Raises:
        ShapeError: not as many losses as pieces.

    Example:
        >>> TokenStrip("7", ("the", " fox"), (0.25, 9.0), 4.625).summary()
        'sample 7: 4.625 nats per token; least expected: "fox" 9.0, "the" 0.2'
    """

    id: str
    pieces: tuple[str, ...]
    losses: tuple[float, ...]
    mean: float

    def _check(self) -> None:
        if len(self.pieces) != len(self.losses):
            got = f"{len(self.losses)} losses"
            raise ShapeError(describe("TokenStrip.losses", got, f"{len(self.pieces)}, one a piece", "Pass as many"))

    def shades(self) -> tuple[int, ...]:
        """How strongly each piece is shaded, from 0 to 100."""
        return tuple(round(100 * min(max(loss, 0.0), DARKEST) / DARKEST) for loss in self.losses)

    def summary(self) -> str:
        """The loss of the sample, and the tokens that cost the most."""
        largest: dict[str, float] = {}
        for loss, piece in sorted(zip(self.losses, map(str.strip, self.pieces), strict=True), reverse=True):
            largest.setdefault(piece, loss)
        words = [f'"{piece}" {loss:.1f}' for piece, loss in largest.items() if piece][:_NAMED]
        named = f"; least expected: {', '.join(words)}" if words else ""
        return f"sample {self.id}: {self.mean:.4g} nats per token{named}"
