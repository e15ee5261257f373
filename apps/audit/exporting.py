"""The log as a file, from the database: streamed, one moment of it, whatever is appended meanwhile."""

import datetime
from collections.abc import Iterator

from django.conf import settings

from apps.audit import export, selectors
from apps.audit.chain import stamp
from apps.audit.export import Digest, Scope


def lines_of_log(scope: Scope, *, now: datetime.datetime) -> Iterator[str]:
    """The export in pieces of many lines: the opening, every event up to the head as it is now, the ending."""
    head = selectors.head()
    digest = Digest()
    count = withheld = 0
    opening = export.opening_line(hub=settings.BASE_URL, upstream=settings.UPSTREAM_REPO, scope=scope, at=stamp(now))
    yield digest.add(opening) + "\n"
    for batch in selectors.events_up_to(head.seq):
        shown = [link if scope is Scope.FULL or is_public else export.without_body(link) for link, is_public in batch]
        yield "".join(f"{digest.add(export.event_line(link))}\n" for link in shown)
        count += len(shown)
        withheld += sum(link.body is None for link in shown)
    ending = export.ending_line(seq=head.seq, hash_=head.hash, count=count, withheld=withheld, digest=digest.hex)
    yield f"{ending}\n"
