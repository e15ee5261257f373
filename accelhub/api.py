"""Routes of the API, version 1."""

from django.urls import path, re_path

from apps.appeals.api import AppealList, AppealVerbView, AppealView, OpenView
from apps.appeals.fairness_views import FairnessView
from apps.audit.api import CheckpointList, DecisionList, ExportView
from apps.gate.api import GateView
from apps.gate.replay_views import ReplayView
from apps.gate.verbs_api import CloseView, GrantView, TakeBackView
from apps.governance.evaluation_views import EvaluationView
from apps.governance.policy_views import PolicyView
from apps.levels.api import OpenPromotion, PromotionList, PromotionVerb, PromotionView
from apps.levels.falling_api import (
    DowngradeList,
    DowngradeVerb,
    DowngradeView,
    MakeDowngrade,
    NoticeList,
    NoticeVerb,
    NoticeView,
)
from apps.platforms.api import LevelView, RepositoryDetail, RepositoryList
from apps.platforms.calendar_views import CalendarView
from apps.quarantine.api import ProposeView, QuarantineList, QuarantineView, RegressionList, VerbView
from apps.quarantine.rules_api import ChangeView, PreviewView, RulesView
from apps.quarantine.upstream_api import UpstreamDisabledList
from apps.relay.acknowledge_api import AcknowledgementList, AcknowledgeView
from apps.relay.api import DispatchList, RejectionsView
from apps.relay.api_jobs import JobList
from apps.relay.declared_api import DeclaredView, DeclareView, WithdrawView
from apps.results.api import MetricsTable, MetricsView
from apps.results.compare_api import CompareView
from apps.results.download_api import OutcomesFile, ReasonsFile, TestsFile
from apps.results.history_api import TestHistory, TestSearch
from apps.results.report_api import ReportView
from apps.results.report_rooms_api import BacklogView, CoverageView, FindingsView, MissingView, SkipsView
from apps.results.upload_views import upload

app_name = "api"
urlpatterns = [
    path("repositories/", RepositoryList.as_view(), name="repositories"),
    path("repositories/<str:owner>/<str:name>/", RepositoryDetail.as_view(), name="repository"),
    path("repositories/<str:owner>/<str:name>/metrics/", MetricsView.as_view(), name="metrics"),
    path("policy/", PolicyView.as_view(), name="policy"),
    path("repositories/<str:owner>/<str:name>/evaluation/", EvaluationView.as_view(), name="evaluation"),
    path("repositories/<str:owner>/<str:name>/declared/", DeclaredView.as_view(), name="declared"),
    path("repositories/<str:owner>/<str:name>/declare/", DeclareView.as_view(), name="declare"),
    path(
        "repositories/<str:owner>/<str:name>/declared/<uuid:public_id>/withdraw/",
        WithdrawView.as_view(),
        name="withdraw_declared",
    ),
    path("metrics/", MetricsTable.as_view(), name="metrics_table"),
    path("jobs/", JobList.as_view(), name="jobs"),
    path("jobs/<uuid:public_id>/acknowledgements/", AcknowledgementList.as_view(), name="acknowledgements"),
    path("jobs/<uuid:public_id>/acknowledge/", AcknowledgeView.as_view(), name="acknowledge"),
    path("appeals/", AppealList.as_view(), name="appeals"),
    path("appeals/open/", OpenView.as_view(), name="open_appeal"),
    path("appeals/<uuid:public_id>/", AppealView.as_view(), name="appeal"),
    path("appeals/<uuid:public_id>/<str:verb>/", AppealVerbView.as_view(), name="appeal_verb"),
    path("fairness/", FairnessView.as_view(), name="fairness"),
    path("decisions/", DecisionList.as_view(), name="decisions"),
    path("decisions/export.jsonl", ExportView.as_view(), name="decisions_export"),
    path("decisions/checkpoints/", CheckpointList.as_view(), name="checkpoints"),
    path("dispatches/", DispatchList.as_view(), name="dispatches"),
    path("repositories/<str:owner>/<str:name>/level/", LevelView.as_view(), name="level"),
    # The trailing slash is optional: a redirect would lose a POST's body.
    re_path(r"^reports/?$", upload, name="upload"),
    path("reports/<uuid:public_id>/", ReportView.as_view(), name="report"),
    path("reports/<uuid:public_id>/findings/", FindingsView.as_view(), name="findings"),
    path("reports/<uuid:public_id>/skips/", SkipsView.as_view(), name="skips"),
    path("reports/<uuid:public_id>/outcomes.parquet", OutcomesFile.as_view(), name="outcomes_file"),
    path("reports/<uuid:public_id>/tests.parquet", TestsFile.as_view(), name="tests_file"),
    path("reports/<uuid:public_id>/reasons.parquet", ReasonsFile.as_view(), name="reasons_file"),
    path("tests/", TestSearch.as_view(), name="tests"),
    path("tests/<int:number>/", TestHistory.as_view(), name="test"),
    path("reports/<uuid:public_id>/coverage/", CoverageView.as_view(), name="coverage"),
    path("reports/<uuid:public_id>/missing/", MissingView.as_view(), name="missing"),
    path("backlog/", BacklogView.as_view(), name="backlog"),
    path("compare/", CompareView.as_view(), name="compare"),
    path("regressions/", RegressionList.as_view(), name="regressions"),
    path("promotions/", PromotionList.as_view(), name="promotions"),
    path("promotions/<uuid:public_id>/", PromotionView.as_view(), name="promotion"),
    path("promotions/<uuid:public_id>/<str:verb>/", PromotionVerb.as_view(), name="promotion_verb"),
    path("repositories/<str:owner>/<str:name>/promote/", OpenPromotion.as_view(), name="promote"),
    path("gate/", GateView.as_view(), name="gate"),
    path("notices/", NoticeList.as_view(), name="notices"),
    path("notices/<uuid:public_id>/", NoticeView.as_view(), name="notice"),
    path("notices/<uuid:public_id>/<str:verb>/", NoticeVerb.as_view(), name="notice_verb"),
    path("downgrades/", DowngradeList.as_view(), name="downgrades"),
    path("downgrades/<uuid:public_id>/", DowngradeView.as_view(), name="downgrade"),
    path("downgrades/<uuid:public_id>/<str:verb>/", DowngradeVerb.as_view(), name="downgrade_verb"),
    path("repositories/<str:owner>/<str:name>/downgrade/", MakeDowngrade.as_view(), name="make_downgrade"),
    path("overrides/", GrantView.as_view(), name="grant_override"),
    path("overrides/<uuid:public_id>/withdraw/", TakeBackView.as_view(), name="withdraw_override"),
    path("breakers/<uuid:public_id>/close/", CloseView.as_view(), name="close_breaker"),
    path("gate/replay/", ReplayView.as_view(), name="gate_replay"),
    path("quarantines/", QuarantineList.as_view(), name="quarantines"),
    path("quarantines/<uuid:public_id>/", QuarantineView.as_view(), name="quarantine"),
    path("quarantines/<uuid:public_id>/<str:verb>/", VerbView.as_view(), name="quarantine_verb"),
    path("upstream-disabled/", UpstreamDisabledList.as_view(), name="upstream_disabled"),
    path("platforms/<slug:slug>/calendar/", CalendarView.as_view(), name="calendar"),
    path("platforms/<slug:slug>/quarantines/", ProposeView.as_view(), name="propose_quarantine"),
    path("flaky-rules/", RulesView.as_view(), name="flaky_rules"),
    path("flaky-rules/preview/", PreviewView.as_view(), name="preview_flaky_rules"),
    path("flaky-rules/change/", ChangeView.as_view(), name="change_flaky_rules"),
    path("rejections/", RejectionsView.as_view(), name="rejections"),
]
