"""What operators must see although the hub goes on: said in the log and kept as a row, once a minute and process."""

import datetime
import logging
import threading

from django.db.models import F, QuerySet
from django.db.models.functions import Greatest

from apps.core import clock
from apps.core.models import Alarm

log = logging.getLogger(__name__)

EVERY = datetime.timedelta(minutes=1)
# After so long without it, an alarm that comes again has begun anew.
OVER_AFTER = datetime.timedelta(hours=1)
SHOWN_FOR = datetime.timedelta(days=7)
DETAIL_MAX = 500

_said: dict[tuple[str, str], datetime.datetime] = {}
_lock = threading.Lock()


def sound(kind: Alarm.Kind, key: str = "", *, detail: str, now: datetime.datetime) -> None:
    """Say that something is wrong: `key` tells apart what it is about. At most once a minute and process; the row
    counts those times."""
    moment = clock.real(now)
    with _lock:
        last = _said.get((kind, key))
        if last is not None and moment - last < EVERY:
            return
        _said[kind, key] = moment
    log.error("%s: %s", kind.label, detail)
    detail = detail[:DETAIL_MAX].replace("\0", "")
    Alarm.objects.bulk_create(
        [Alarm(kind=kind, key=key, detail=detail, began_at=moment, last_at=moment, times=0)], ignore_conflicts=True
    )
    row = Alarm.objects.filter(kind=kind, key=key)
    row.filter(last_at__lt=moment - OVER_AFTER).update(began_at=moment, times=0)
    row.update(detail=detail, last_at=Greatest("last_at", moment), times=F("times") + 1)


def forget() -> None:
    """Let this process say every alarm again at once."""
    with _lock:
        _said.clear()


def recent(now: datetime.datetime) -> QuerySet[Alarm]:
    """The alarms of the last seven days, the newest first."""
    return Alarm.objects.filter(last_at__gte=now - SHOWN_FOR).order_by("-last_at", "-pk")
