"""Demo or real: a database is one of the two from its first `migrate` on (accelhub/embedded/folders.py does the same
for data folders)."""

from typing import Any

from django.conf import settings
from django.core.management import CommandError
from django.db import connection, transaction

from accelhub.embedded.folders import kind_of, refusal
from accelhub.env import env
from apps.core.enums import Kind


def kind_of_database() -> Kind | None:
    """What the database was first used for; None for one without people. Those of before the row show it by these."""
    from apps.accounts.models import User
    from apps.core.models import Installation

    tables = connection.introspection.table_names()
    if Installation._meta.db_table in tables and (row := Installation.objects.first()):
        return Kind(row.kind)
    if User._meta.db_table not in tables:
        return None
    people = set(User.objects.values_list("is_demo", flat=True).distinct())
    return kind_of(True in people) if people else None


def refuse_other_database(wanted: Kind) -> None:
    """Raises CommandError when the database is of the other kind."""
    found = kind_of_database()
    if found in (None, wanted):
        return
    name = "DATABASE_URL" if env.str("DATABASE_URL", "") else "ACCELHUB_DATA_DIR"
    raise CommandError(refusal("The database", found, wanted, f"{name} to another one"))


def before_migrate(**_signal: Any) -> None:
    refuse_other_database(kind_of(settings.DEMO))


@transaction.atomic
def after_migrate(**_signal: Any) -> None:
    """The first `migrate` says what the database is for."""
    from apps.core.models import Installation

    if Installation._meta.db_table in connection.introspection.table_names():
        Installation.objects.get_or_create(defaults={"kind": kind_of(settings.DEMO)})
