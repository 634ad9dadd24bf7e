"""What moves between 1,024 processes as 64 x 16 (`fsdp` x `tp`), on paper: sizes are counted, nothing is sent.

`python -m benchmarks.mesh_traffic` prints the table of docs/scale.md.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Iterator

from assay import Accuracy, Meter
from assay.evaluation.processes.arrange import Introduction, arranged
from assay.evaluation.processes.companions import MOST_COMPARED
from assay.evaluation.processes.links import Links
from assay.meter.processes.sync import FIRST_WORDS, RANK_WORDS

TEXTS, TOKENS, WORDS, TOP = 8, 512, 128_000, 5


def introductions(coordinates: int, members: int) -> list[Introduction]:
    """What each process says: the members of its coordinate, and all those that have a part of its parameters."""
    found = []
    for rank in range(coordinates * members):
        first, place = rank // members * members, rank % members
        same = tuple(range(first, first + members))
        step = tuple(range(place, coordinates * members, members))
        links = Links(frozenset({same}), frozenset({step}), ("tp", "fsdp"), has_distributed_tensors=True)
        found.append(Introduction(links))
    return found


def table(coordinates: int, members: int) -> Iterator[tuple[str, str, str]]:
    """What, how many bytes a process, and between whom."""
    everyone = introductions(coordinates, members)
    places = arranged(everyone)
    assert {place.count for place in places} == {coordinates}
    assert sum(place.counts for place in places) == coordinates
    assert {len(place.step) for place in places} == {coordinates * members}
    told = sum(len(pickle.dumps(each)) for each in everyone)
    tokens, among = TEXTS * TOKENS, f"{members} with the same samples"
    yield "at the start: what each is tied to", f"{told:,} received", "all, once"
    yield "a batch: digest of the samples", f"{3 * 8}", among
    yield "a batch of perplexity: losses from logits sharded over words", f"{tokens * 24:,}", among
    yield "instead: gathering the logits in bfloat16", f"{tokens * WORDS * 2:,}", among
    yield "`Meter.update`, the same tokens: argmax", f"{tokens * 8:,}", among
    yield f"`Meter.update`, the same tokens: top-{TOP}, of any size", f"{tokens * 24:,}", among
    yield f"instead: {TOP} candidates of each, with indices", f"{tokens * TOP * 16 * members:,}", among
    yield "a stream: how many batches there are", "8", "all, a batch"
    counts = Meter(Accuracy(num_classes=10)).states()
    size = sum(value.nbytes for state in counts for value in state.values())
    sent = (FIRST_WORDS + RANK_WORDS * coordinates * members) * 8
    yield f"at the end: counts, here {size:,} bytes", f"{sent:,}, in one all-reduce", "all, once"
    yield "at the end: marks of the outputs", f"{coordinates * members * MOST_COMPARED * 12:,} received", "all, once"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coordinates", type=int, default=64)
    parser.add_argument("--members", type=int, default=16)
    options = parser.parse_args()
    print("| what | bytes a process | between |\n|---|--:|---|")
    for row in table(options.coordinates, options.members):
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
