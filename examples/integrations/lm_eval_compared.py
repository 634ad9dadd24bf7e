"""Two runs of lm-eval become reports, and are compared sample by sample.

The runs are those of the tests, of tiny models on tiny tasks. Yours are made by
`lm_eval run ... --output_path FOLDER --log_samples`; lm-eval need not be installed to read them.

python examples/integrations/lm_eval_compared.py
"""

from pathlib import Path

from assay.integrations import read_lm_eval
from assay.report import compare

RUNS = Path(__file__).parents[2] / "tests" / "integrations" / "lm_eval_runs"
first, second = (read_lm_eval(RUNS / name, title=name) for name in ("first", "second"))
compared = compare(first, second)
compared.show()

assert compared.delta("acc").paired
print(f"{sum(len(section.samples) for section in first.sections)} samples")
