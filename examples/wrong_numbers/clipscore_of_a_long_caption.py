import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torchmetrics.functional.multimodal import clip_score as theirs
from transformers import CLIPConfig, CLIPImageProcessor, CLIPModel, CLIPProcessor, PreTrainedTokenizerFast

from assay.integrations import clip_score

words = ["[PAD]", "a", "dog", "cat", "red", "runs", "[BOS]", "[EOS]"]
split = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, "[PAD]"))
split.pre_tokenizer = pre_tokenizers.Whitespace()
split.post_processor = processors.TemplateProcessing("[BOS] $A [EOS]", special_tokens=[("[BOS]", 6), ("[EOS]", 7)])
special = {"pad_token": "[PAD]", "unk_token": "[PAD]", "bos_token": "[BOS]", "eos_token": "[EOS]"}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=split, model_max_length=8, **special)

torch.manual_seed(0)
small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
text = small | {"vocab_size": 8, "max_position_embeddings": 8, "eos_token_id": 7, "initializer_range": 0.5}
vision = small | {"image_size": 16, "patch_size": 8}
model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).eval()
shape = CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
processor = CLIPProcessor(image_processor=shape, tokenizer=tokenizer)


class Tensors:
    """What TorchMetrics takes: since transformers 5 the model gives more than a tensor."""

    config = model.config

    def to(self, device):
        return self

    def get_text_features(self, ids, mask):
        return model.get_text_features(ids, mask).pooler_output

    def get_image_features(self, pixels):
        return model.get_image_features(pixels).pooler_output


image = torch.randint(256, (3, 16, 16), generator=torch.Generator().manual_seed(1))
for caption in ("a dog a dog a dog a dog", "red cat runs red cat runs red cat"):
    ids = torch.tensor([[6, *(words.index(word) for word in caption.split()[:6]), 7]])
    cosine = torch.cosine_similarity(
        model.get_text_features(ids).pooler_output,
        model.get_image_features(processor(images=[image], return_tensors="pt")["pixel_values"]).pooler_output,
    )
    print(f"TorchMetrics {theirs(image, caption, lambda: (Tensors(), processor)):.4f}")
    print(f"by hand      {100 * float(cosine.clamp(min=0)):.4f}")
    print(f"assay        {clip_score(model, processor)([image], [caption]):.4f}")
