import pytest

from assay import Accuracy
from assay.audit import audit
from assay.errors import ConfigError


@pytest.mark.parametrize("target", [Accuracy(num_classes=3), Accuracy])
def test_a_target_that_is_no_string_is_refused_with_its_name(target):
    with pytest.raises(ConfigError, match=r"target: got Accuracy, .* Pass the name .* assay.*rates:Accuracy"):
        audit(target)
