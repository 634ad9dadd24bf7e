"""What tells the content of a file from another one of the same name, read from a few places of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Span: TypeAlias = tuple[int, int]
"""The first byte of a place in a file, and how many bytes are read there."""

WHOLE_BYTES = 1 << 17
"""Of a file of at most this size every byte counts."""
BLOCKS = 8
BLOCK = WHOLE_BYTES // BLOCKS
MOST_CHUNKS, CHUNK_HEAD = 256, 1 << 11
_DIGEST_BYTES = 8
_STATED = ("ETag", "etag", "md5Hash")
"""What stores of objects call their own digests of a file."""


def content_digest(fragment: Any, columns: Sequence[str], metadata: Any = None) -> str:
    """The digest of a file of a data set of pyarrow: the same for copies on other machines, and whoever reads it.

    Counted are the size, and of a file of at most `WHOLE_BYTES` every byte. Of a larger one of Parquet it is the
    footer, which has the statistics of each row group, and the beginnings of up to 256 chunks of the columns that are
    measured; of other formats 8 blocks of 16 KiB, from the first to the last. A store that states a digest of its own
    (an ETag) is believed.

    Args:
        fragment: the file.
        columns: those that are measured.
        metadata: of a file of Parquet.

    Raises:
        OSError: the file cannot be read.
    """
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    if stated := _stated(fragment):
        digest.update(stated.encode())
        return digest.hexdigest()
    with fragment.filesystem.open_input_file(fragment.path) as file:
        size = file.size()
        digest.update(size.to_bytes(8, "little"))
        if size <= WHOLE_BYTES:
            spans = [(0, size)]
        elif metadata is None:
            spans = [(round(first), BLOCK) for first in np.linspace(0, size - BLOCK, BLOCKS)]
        else:
            spans = [_footer(file, size), *_chunk_heads(metadata, columns)]
        for first, count in spans:
            digest.update(file.read_at(count, first))
    return digest.hexdigest()


def changed_files(contents: Mapping[str, str], others: Mapping[str, str]) -> list[str]:
    """The files whose digests differ; one that is known on one side only says nothing.

    Example:
        >>> changed_files({"a": "1", "b": "2"}, {"b": "3", "c": "4"})
        ['b']
    """
    return [file for file, digest in contents.items() if others.get(file, digest) != digest]


def _stated(fragment: Any) -> str:
    """What a store says of the content of a file; empty for one on this machine, or where it says nothing."""
    handler = getattr(fragment.filesystem, "handler", None)
    if handler is None:
        return ""
    about = handler.fs.info(fragment.path)
    return next((f"{about.get('size')} {about[name]}" for name in _STATED if about.get(name)), "")


def _footer(file: Any, size: int) -> Span:
    """The footer of a file of Parquet: it ends with its length, in four bytes, and `PAR1`."""
    length = int.from_bytes(file.read_at(4, size - 8), "little") + 8
    return max(0, size - length), min(size, length)


def _chunk_heads(metadata: Any, columns: Sequence[str]) -> list[Span]:
    """The beginnings of the dictionaries and of the values of some chunks, from the first to the last."""
    names = [metadata.schema.column(number).path for number in range(metadata.num_columns)]
    numbers = [
        number
        for number, path in enumerate(names)
        if any(path == name or path.startswith(f"{name}.") for name in columns)
    ]
    count = metadata.num_row_groups * len(numbers)
    spans = []
    for place in np.unique(np.linspace(0, count - 1, min(count, MOST_CHUNKS)).astype(int)).tolist():
        chunk = metadata.row_group(place // len(numbers)).column(numbers[place % len(numbers)])
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            spans.append((chunk.dictionary_page_offset, CHUNK_HEAD))
        spans.append((chunk.data_page_offset, min(CHUNK_HEAD, chunk.total_compressed_size)))
    return spans
