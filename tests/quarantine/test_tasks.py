"""What runs by itself about quarantines."""

import datetime

import pytest

from apps.core.clock import now
from apps.quarantine.models import Quarantine
from apps.quarantine.tasks import expire_quarantines
from tests.factories.tests import catalogued
from tests.quarantine.test_services import in_force, platform

DAY = datetime.timedelta(days=1)


@pytest.mark.django_db
def test_what_has_run_out_ends_and_nothing_else() -> None:
    kestrel, moment = platform(), now()
    over = in_force(kestrel, catalogued("test_over"), at=moment - 31 * DAY)
    holds = in_force(kestrel, catalogued("test_holds"), at=moment - DAY)
    assert (expire_quarantines(), expire_quarantines()) == (1, 0)
    assert dict(Quarantine.objects.values_list("pk", "state")) == {over.pk: "expired", holds.pk: "in_force"}
