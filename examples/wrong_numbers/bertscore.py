from types import SimpleNamespace

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torchmetrics.functional.text import bert_score as theirs
from transformers import PreTrainedTokenizerFast

from assay import Meter
from assay.integrations import bert_score

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"]
split = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, "[UNK]"))
split.pre_tokenizer = pre_tokenizers.Whitespace()
split.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
special = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=split, model_max_length=16, **special)


class OneDirectionAWord(torch.nn.Embedding):
    def forward(self, input_ids, attention_mask=None, **options):
        return SimpleNamespace(hidden_states=(super().forward(input_ids),))


def embedded(model, batch):
    return model(batch["input_ids"]).hidden_states[0]


model = OneDirectionAWord.from_pretrained(torch.eye(len(words)))
preds, target = ["a b", "d d d", "e"], ["a b c", "d", "e f"]
f1 = theirs(preds, target, model=model, user_tokenizer=tokenizer, user_forward_fn=embedded)["f1"]
print(f"TorchMetrics {f1.mean():.4f}")
print(f"by hand      {(2 * 1 * (2 / 3) / (1 + 2 / 3) + 1 + 2 * 1 * (1 / 2) / (1 + 1 / 2)) / 3:.4f}")
meter = Meter(**bert_score(model, tokenizer, "of words"))
meter.update(preds, target)
print(f"assay        {meter.compute()['f1']:.4f}")
