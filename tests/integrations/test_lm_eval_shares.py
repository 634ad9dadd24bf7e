"""Requests that processes share out, without lm-eval: each is answered once, and every process has all answers."""

from __future__ import annotations

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from assay.evaluation.processes.place import Place
from assay.evaluation.processes.ranks import Ranks
from assay.integrations.lm_eval.processes import ROUND, RequestProcesses
from assay.language.generation import chooser, generate_by
from assay.language.losses import sharded_labels
from ranks import processes

COUNT = 2 * ROUND + 3


def shares(rank, size):
    """The answers and what this process was asked, with a batch that an answer before makes needless."""
    asked, known = [], set()

    def missing():
        for batch in range(COUNT):
            if batch not in known:
                yield batch

    with Ranks(20.0) as ranks:
        requests = RequestProcesses(ranks)
        requests.same("kind", "digest")
        found = []
        for batch, (answer,) in requests.answered(missing(), lambda batch: asked.append(batch) or [batch**2], None):
            found.append([batch, answer])
            known.add(2 * ROUND + 1)
    return found, asked


def test_each_batch_is_answered_by_one_process_and_known_to_all(tmp_path):
    (found, first), (others, second) = processes(shares, 2, tmp_path)
    needed = [batch for batch in range(COUNT) if batch != 2 * ROUND + 1]
    assert found == others == [[batch, batch**2] for batch in needed]
    assert sorted(first + second) == needed
    assert first == [*range(0, 2 * ROUND, 2), 2 * ROUND]


def differences(rank, size):
    found = []
    answers = ([1.0], [1.001]), ([1.0], [1.1]), (["a"], ["b"]), ([(1.0, True)], [(1.0, False)])
    for own in answers:
        try:
            with Ranks(20.0) as ranks:
                ranks.place = Place(rank, 0, (0,), (0, 1), (0, 1), (0, 1))
                ((_, answer),) = RequestProcesses(ranks).answered(iter([0]), lambda _, own=own: own[rank], None)
            found.append(answer)
        except Exception as error:
            found.append(f"{type(error).__name__}: {error}")
    try:
        with Ranks(20.0) as ranks:
            RequestProcesses(ranks).same("generate_until", f"digest {rank}")
    except Exception as error:
        found.append(f"{type(error).__name__}: {error}")
    return found


def test_processes_that_share_a_model_must_answer_alike(tmp_path):
    for rounded, number, text, tie, requests in processes(differences, 2, tmp_path):
        assert rounded == [1.0]
        assert "ConfigError: outputs of the model: got other answers on rank 1 than on rank 0" in number
        assert "got other answers on rank 1 than on rank 0" in text
        assert tie == [[1.0, True]]
        assert "requests: got other requests (generate_until) on rank 1 than on rank 0" in requests


def parts(rank, size):
    """The most probable tokens, and a text, by logits of which each process has some words or some tokens."""
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    logits = torch.randn(2, 4, 9, generator=torch.Generator().manual_seed(0)).round(decimals=1)
    found = [
        sharded_labels(distribute_tensor(logits, mesh, [place]), logits[..., 0]).tolist()
        for place in (Shard(2), Shard(1), Shard(0), Replicate())
    ]
    rows = torch.eye(256).roll(1, 1) * 9  # after each byte the next one

    def model(ids):
        return DTensor.from_local(rows[ids].chunk(size, 1)[rank], mesh, [Shard(1)], run_check=False)

    text = generate_by(model, "abc", 4, chooser(), torch.device("cpu"), multiple=size).text
    return [logits.argmax(2).tolist(), found, text]


def test_tokens_are_those_of_whole_logits(tmp_path):
    for expected, found, text in processes(parts, 2, tmp_path):
        assert found == [expected] * 4
        assert text == "defg"
