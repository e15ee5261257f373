"""`manage.py platform create|add-member`."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from apps.audit.models import Event
from apps.audit.selectors import body_of
from apps.platforms.models import Membership, Platform
from tests.factories.listing import listed, user

pytestmark = pytest.mark.django_db


def platform(*arguments: str) -> str:
    out = StringIO()
    call_command("platform", *arguments, stdout=out)
    return out.getvalue()


def last() -> dict[str, object]:
    event = Event.objects.first()
    assert event is not None
    body = body_of(event)
    return {name: body[name] for name in ("action", "summary", "before", "after", "is_decision")}


@pytest.mark.parametrize(
    ("options", "kind", "word"),
    [([], "in_tree", "in tree"), (["--kind", "out_of_tree"], "out_of_tree", "out of tree")],
)
def test_a_platform_is_made_and_that_is_a_decision(options: list[str], kind: str, word: str) -> None:
    assert platform("create", "cuda", "CUDA", *options) == "/platforms/cuda/ is there\n"
    assert list(Platform.objects.values_list("slug", "name", "kind")) == [("cuda", "CUDA", kind)]
    assert last() == {
        "action": "platform.created",
        "summary": f"CUDA became a platform ({word})",
        "before": {},
        "after": {"slug": "cuda", "name": "CUDA", "kind": kind},
        "is_decision": True,
    }


BAD_SLUG = "lower-case letters, digits, - and _, at most 80."


@pytest.mark.parametrize(
    ("slug", "name", "words"),
    [
        ("acme-torch", "Acme", "slug: 'acme-torch' is taken, choose another."),
        ("Two Words", "Acme", f"slug: 'Two Words' cannot stand in an address, use {BAD_SLUG}"),
        ("x" * 81, "Acme", f"slug: {'x' * 81!r} cannot stand in an address, use {BAD_SLUG}"),
        ("", "Acme", f"slug: '' cannot stand in an address, use {BAD_SLUG}"),
        ("acme", " ", "name: needs 1 to 100 characters."),
        ("acme", "x" * 101, "name: needs 1 to 100 characters."),
    ],
)
def test_a_platform_that_cannot_be_made_is_refused_with_the_reason(slug: str, name: str, words: str) -> None:
    listed({"acme/torch": 1})
    with pytest.raises(CommandError) as caught:
        platform("create", slug, name)
    assert str(caught.value) == words
    assert (Platform.objects.count(), Event.objects.count()) == (1, 1)


def test_a_member_is_added_once_and_that_is_no_decision() -> None:
    listed({"acme/torch": 1})
    user(username="ada")
    assert platform("add-member", "acme-torch", "ada") == "ada now speaks for torch\n"
    assert last() == {
        "action": "platform.member_added",
        "summary": "ada speaks for torch",
        "before": {},
        "after": {"user": "ada"},
        "is_decision": False,
    }
    assert platform("add-member", "acme-torch", "ada") == "ada already spoke for torch\n"
    assert list(Membership.objects.values_list("platform__slug", "user__username")) == [("acme-torch", "ada")]
    assert Event.objects.count() == 2


@pytest.mark.parametrize(
    ("slug", "username", "words"),
    [
        ("nobody", "ada", "There is no platform 'nobody'."),
        ("acme-torch", "nobody", "There is no user 'nobody'."),
    ],
)
def test_a_member_of_nothing_is_refused(slug: str, username: str, words: str) -> None:
    listed({"acme/torch": 1})
    user(username="ada")
    with pytest.raises(CommandError) as caught:
        platform("add-member", slug, username)
    assert str(caught.value) == words
    assert not Membership.objects.exists()
