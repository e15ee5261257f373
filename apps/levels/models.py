"""How repositories rise and fall. Django looks for models here."""

from apps.levels.models_falling import Downgrade, FallNotice, NoticeAnswer, WayBack
from apps.levels.models_promotions import Approval, EvidenceBundle, Objection, Promotion

__all__ = [
    "Approval",
    "Downgrade",
    "EvidenceBundle",
    "FallNotice",
    "NoticeAnswer",
    "Objection",
    "Promotion",
    "WayBack",
]
