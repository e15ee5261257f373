"""How repositories rise and fall. Django looks for models here."""

from apps.levels.models_promotions import Approval, EvidenceBundle, Objection, Promotion

__all__ = ["Approval", "EvidenceBundle", "Objection", "Promotion"]
