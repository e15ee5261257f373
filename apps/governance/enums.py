"""The vocabulary of proposals."""

from django.db import models


class State(models.TextChoices):
    """Where a proposal is."""

    WAITING = "waiting", "waiting"
    RETURNED = "returned", "returned"
    ACCEPTED = "accepted", "accepted"
    WITHDRAWN = "withdrawn", "withdrawn"


class Verb(models.TextChoices):
    """What can be done with a proposal; the label says what was done."""

    SUBMIT = "submit", "submitted"
    RETURN = "return", "returned"
    RESUBMIT = "resubmit", "resubmitted"
    ACCEPT = "accept", "accepted"
    WITHDRAW = "withdraw", "withdrawn"
    PUT_BACK = "put_back", "put back"


class Party(models.TextChoices):
    """Whose turn it is, who may act, who is written to."""

    MAINTAINERS = "maintainers", "the maintainers"
    VENDOR = "vendor", "the vendor"
    UPSTREAM = "upstream", "upstream"
    NOBODY = "nobody", "nobody"


class NoticeState(models.TextChoices):
    """Where an e-mail is."""

    PENDING = "pending", "pending"
    SENDING = "sending", "sending"
    SENT = "sent", "sent"
    GIVEN_UP = "given_up", "given up"
