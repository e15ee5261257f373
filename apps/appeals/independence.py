"""Who may decide an appeal: somebody else, of another organisation."""

from apps.accounts.models import User
from apps.appeals.models import Appeal
from apps.core.errors import Problem
from apps.platforms.recusals import recusal_of


def dependence_of(user: User, appeal: Appeal) -> str:
    """Why this user may not decide an appeal, in one sentence; empty where they may. Four queries at most."""
    if why := recusal_of(user, appeal.platform):
        return why
    # Who has left the platform since spoke for it then.
    appellant = appeal.appellant
    if user == appellant:
        return f"{user.get_username()} made the appeal"
    if user.organisation_id and user.organisation_id == appellant.organisation_id:
        return f"{user.get_username()} is of the organisation that made the appeal: {user.organisation}"
    if not appeal.decider_id_then:
        return ""
    if str(user.public_id) == appeal.decider_id_then:
        return f"{user.get_username()} made the contested decision #{appeal.decision_seq}"
    colleagues = User.objects.filter(public_id=appeal.decider_id_then, organisation=user.organisation_id)
    if user.organisation_id and colleagues.exists():
        return f"{user.get_username()} is of the organisation that made the contested decision: {user.organisation}"
    return ""


def refuse_dependent(user: User, appeal: Appeal) -> None:
    """Raises Problem `recusal` where the user has to leave the appeal to others."""
    if why := dependence_of(user, appeal):
        raise Problem("recusal", f"{why}, so a maintainer of another organisation has to decide.")
