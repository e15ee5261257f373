"""The tables of this room."""

from apps.levels.models_falling import Downgrade, FallNotice, NoticeAnswer, WayBack

__all__ = ["Downgrade", "FallNotice", "NoticeAnswer", "WayBack"]
