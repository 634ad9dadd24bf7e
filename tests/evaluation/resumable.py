"""An evaluation that kills itself: at the n-th thing it does, where a thing is a batch or a step of writing a file."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

import assay._atomic
from assay import AUROC, Accuracy, F1Score, evaluate
from assay.report import Report
from evaluation.exact_products import classifier, sixteenths


class Killer:
    """Kills the process at the n-th call. That is no part of the model, and so not of what it is pickled from."""

    def __init__(self, at=""):
        self.at, self.done = at, 0

    def __reduce__(self):
        return Killer, ()

    def __call__(self, *_):
        self.done += 1
        if str(self.done) == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder, at):
    torch.set_num_threads(1)
    count = Killer(at)

    def counted(act):
        def acted(*args, **kwargs):
            count()
            result = act(*args, **kwargs)
            count()
            return result

        return acted

    os.fsync, os.replace = counted(os.fsync), counted(os.replace)
    torch.manual_seed(0)
    net = classifier(4, 3)
    net.register_forward_hook(count)
    data = TensorDataset(sixteenths(60, 4), torch.randint(3, (60,)))
    report = evaluate(
        net,
        DataLoader(data, batch_size=7, shuffle=True),
        {"acc": Accuracy(num_classes=3), "auroc": AUROC(num_classes=3), "F1": F1Score(num_classes=3, average="macro")},
        device="cpu",
        resume=folder,
        checkpoint_every=0.0,
        slices={"class": 1},
    )
    (section,) = report.sections
    tables = [table for table in section.tables if table.name != "Run"]
    print(Report("", [dataclasses.replace(section, tables=tables)], created="", environment={}).to_json())


assert assay._atomic.os is os
if __name__ == "__main__":
    main(*sys.argv[1:])
