from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.cli.loaders.datasets import open_data
from assay.errors import AssayError, StateError

Image = pytest.importorskip("PIL.Image")


def picture(path, width=6, height=4, mode="RGB", seed=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    pixels = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return pixels


def folder(tmp_path):
    for k, name in enumerate(["dog", "cat", "dog"]):
        picture(tmp_path / "set" / name / f"{k}.png", seed=k)
    picture(tmp_path / "set" / "cat" / "deeper" / "9.png", seed=9)
    (tmp_path / "set" / "cat" / "notes.txt").write_text("no image", "utf-8")
    (tmp_path / "set" / ".hidden").mkdir(exist_ok=True)
    return tmp_path / "set"


def test_a_subfolder_is_a_class(tmp_path, options, model):
    data = open_data(options(folder(tmp_path)), model, {})
    batch = next(iter(data.data))
    assert batch["path"] == ["cat/1.png", "cat/deeper/9.png", "dog/0.png", "dog/2.png"]
    assert batch["label"].tolist() == [0, 0, 1, 1]
    assert (data.inputs, data.target, data.ids, data.classes) == ("image", "label", "path", ("cat", "dog"))
    pixels = np.asarray(Image.open(tmp_path / "set" / "dog" / "0.png"))
    assert torch.equal(batch["image"][2], torch.tensor(pixels).permute(2, 0, 1).float() / 255)


def test_the_order_of_classes_is_said(tmp_path, options, model):
    data = open_data(options(folder(tmp_path), classes=("dog", "bird", "cat")), model, {})
    assert next(iter(data.data))["label"].tolist() == [2, 2, 0, 0]
    assert data.notes[0] == "3 classes in the order that was said: 0 = dog, 1 = bird, 2 = cat."
    with pytest.raises(AssayError, match="got 'cat', expected one of the classes dog, bird"):
        open_data(options(folder(tmp_path), classes=("dog", "bird")), model, {})


def test_resized_cropped_and_normalised(tmp_path, options, model):
    path = folder(tmp_path)
    said = options(path, image_size=4, image_resize=8, mean=(0.5, 0.25, 0.0), std=(0.5, 1.0, 2.0))
    data = open_data(said, model, {})
    image = Image.open(path / "cat" / "1.png").resize((12, 8), Image.Resampling.BILINEAR).crop((4, 2, 8, 6))
    expected = np.asarray(image, dtype=np.float64) / 255
    expected = (expected - [0.5, 0.25, 0.0]) / [0.5, 1.0, 2.0]
    found = next(iter(data.data))["image"][0]
    np.testing.assert_allclose(found.permute(1, 2, 0).numpy(), expected, atol=1e-6)
    assert (
        data.notes[1] == "Images: RGB; shorter side to 8; the middle 4 x 4; minus 0.5, 0.25, 0.0, over 0.5, 1.0, 2.0."
    )


def test_grey_images_have_one_channel(tmp_path, options, model):
    pixels = picture(tmp_path / "set" / "a" / "1.png", mode="L")
    found = next(iter(open_data(options(tmp_path / "set", image_mode="L"), model, {}).data))["image"]
    assert torch.equal(found[0, 0], torch.tensor(pixels).float() / 255)


def test_images_of_several_sizes_are_told(tmp_path, options, model):
    picture(tmp_path / "set" / "a" / "1.png")
    picture(tmp_path / "set" / "a" / "2.png", width=9)
    data = open_data(options(tmp_path / "set"), model, {})
    with pytest.raises(AssayError, match=r"1.png of 6 x 4 and 2.png of 9 x 4, expected one size. Say it with"):
        next(iter(data.data))
    assert next(iter(open_data(options(tmp_path / "set", image_size=4), model, {}).data))["image"].shape == (2, 3, 4, 4)


def test_what_is_no_image_is_told(tmp_path, options, model):
    path = tmp_path / "set" / "a" / "1.png"
    picture(path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(StateError, match=r"1\.png: got a file that cannot be read .*, expected an image"):
        next(iter(open_data(options(tmp_path / "set"), model, {}).data))
    Image.fromarray(np.zeros((4, 6), dtype=np.uint16)).save(path)
    with pytest.raises(AssayError, match="got mode I;16, expected 8 bits a channel"):
        next(iter(open_data(options(tmp_path / "set"), model, {}).data))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image_mode": "CMYK"}, "image_mode: got 'CMYK', expected RGB or L"),
        ({"mean": (0.5,), "std": (0.5,)}, "mean: got 1 numbers, expected 3, one a channel"),
        ({"mean": (0.5, 0.5, 0.5)}, "got one of mean and std, expected both or none"),
        ({"mean": (0.5,) * 3, "std": (0.0,) * 3}, "std: got .*, expected numbers above 0"),
        ({"image_size": 8, "image_resize": 4}, "got image_size 8 and image_resize 4"),
    ],
)
def test_options_that_cannot_be_are_told(tmp_path, options, model, given, message):
    with pytest.raises(AssayError, match=message):
        open_data(options(folder(tmp_path), **given), model, {})


def test_folders_without_images_are_told(tmp_path, options, model):
    with pytest.raises(AssayError, match="got no subfolder, expected images"):
        open_data(options(tmp_path), model, {})
    (tmp_path / "a").mkdir()
    with pytest.raises(AssayError, match="got 1 subfolders without images"):
        open_data(options(tmp_path), model, {})
