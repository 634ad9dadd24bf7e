import contextlib
import io

import torch
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from assay.metrics import MeanAveragePrecision

truth, hit, miss = [10.0, 10, 50, 50], [10.0, 10, 50, 50], [100.0, 100, 50, 50]


def of_pycocotools(detections):
    coco = COCO()
    common = {"category_id": 1, "area": 2500.0, "iscrowd": 0, "bbox": truth}
    annotations = [{"id": k + 1, "image_id": k, **common} for k in range(2)]
    images = [{"id": 0}, {"id": 1}]
    coco.dataset = {"info": {}, "images": images, "categories": [{"id": 1}], "annotations": annotations}
    coco.createIndex()
    found = [{"image_id": k, "category_id": 1, "bbox": box, "score": 0.5} for k, box in enumerate(detections)]
    evaluation = COCOeval(coco, coco.loadRes(found), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return evaluation.stats[0]


def of_assay(detections):
    label, score = torch.tensor([1]), torch.tensor([0.5])
    preds = [{"boxes": torch.tensor([box]), "scores": score, "labels": label} for box in detections]
    target = [{"boxes": torch.tensor([truth]), "labels": label}] * 2
    return MeanAveragePrecision(box_format="xywh")(preds, target)["map"]


with contextlib.redirect_stdout(io.StringIO()):
    forth, back = of_pycocotools([hit, miss]), of_pycocotools([miss, hit])
print(f"pycocotools {forth:.4f} {back:.4f}")
print(f"by hand     {51 / 101 * 1 / 2:.4f}")
print(f"assay       {of_assay([hit, miss]):.4f} {of_assay([miss, hit]):.4f}")
