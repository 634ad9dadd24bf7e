import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torchmetrics.functional.text import infolm as theirs
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from assay.integrations import infolm

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"]
split = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, "[UNK]"))
split.pre_tokenizer = pre_tokenizers.Whitespace()
split.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
special = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
tokenizer = PreTrainedTokenizerFast(tokenizer_object=split, model_max_length=16, **special)
size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
torch.manual_seed(0)
model = BertForMaskedLM(BertConfig(vocab_size=len(words), initializer_range=1.0, **size)).eval()


def expected_words(sentence):
    """The mean of what the model expects in each place of one sentence."""
    tokens = tokenizer(sentence, return_tensors="pt").input_ids
    places = range(1, tokens.shape[1] - 1)
    with torch.no_grad():
        logits = [model(tokens.index_fill(1, torch.tensor(k), 4)).logits[0, k] for k in places]
    return torch.stack(logits).double().mul(1 / 0.25).softmax(1).mean(0)


preds, target = ["a b", "d d d", "e"], ["a b c", "d", "e f"]
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    found = theirs(preds, target, folder, idf=False, max_length=16, verbose=False)
pairs = [(expected_words(p), expected_words(q)) for p, q in zip(preds, target, strict=True)]
print(f"TorchMetrics {found:.4f}")
print(f"by hand      {sum((q * (q / p).log()).sum() for p, q in pairs) / 3:.4f}")
print(f"assay        {infolm(model, tokenizer, 'of words')(preds, target):.4f}")
