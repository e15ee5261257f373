from django.db import migrations

# What a notice was opened on, and a downgrade made with, must be read later as it was: only how they end is written.
FROZEN = """
CREATE FUNCTION levels_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what a notice or a downgrade stands on is never changed: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE TRIGGER levels_notice_frozen BEFORE UPDATE OF public_id, repository_id, level, criteria, figures, way_back,
    dwell_days, policy_number, calendar, opened_at, deadline_at, event_seq ON levels_fallnotice
    FOR EACH ROW EXECUTE FUNCTION levels_refuse();
CREATE TRIGGER levels_notice_ended BEFORE UPDATE OF state, ended_at, ended_by, ended_why ON levels_fallnotice
    FOR EACH ROW WHEN (OLD.state <> 'open') EXECUTE FUNCTION levels_refuse();
CREATE TRIGGER levels_notice_kept BEFORE DELETE ON levels_fallnotice
    FOR EACH ROW EXECUTE FUNCTION levels_refuse();
CREATE TRIGGER levels_answer_frozen BEFORE UPDATE OR DELETE ON levels_noticeanswer
    FOR EACH ROW EXECUTE FUNCTION levels_refuse();
CREATE TRIGGER levels_downgrade_frozen BEFORE UPDATE OF public_id, repository_id, level_from, level_to, reason,
    by_label, calendar, at, deadline_at, event_seq ON levels_downgrade
    FOR EACH ROW EXECUTE FUNCTION levels_refuse();
CREATE TRIGGER levels_downgrade_ended BEFORE UPDATE OF state, ended_at, ended_by, ended_why ON levels_downgrade
    FOR EACH ROW WHEN (OLD.state <> 'open') EXECUTE FUNCTION levels_refuse();
CREATE TRIGGER levels_downgrade_kept BEFORE DELETE ON levels_downgrade
    FOR EACH ROW EXECUTE FUNCTION levels_refuse();
"""


class Migration(migrations.Migration):
    dependencies = [("levels", "0002_notices_and_downgrades")]

    operations = [migrations.RunSQL(FROZEN, migrations.RunSQL.noop)]
