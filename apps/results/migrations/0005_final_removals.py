"""PostgreSQL keeps what a CHECK cannot see: a report that was taken down stays so and takes no upload, and no shard lies
beyond its report's number of them."""

from django.db import migrations

FORWARD = r"""
CREATE FUNCTION results_report_stays_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'report % was taken down: nothing changes it any more', OLD.id
        USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'results_report_stays_removed';
END $$;
CREATE TRIGGER results_report_stays_removed BEFORE UPDATE ON results_report
    FOR EACH ROW WHEN (OLD.state = 'removed') EXECUTE FUNCTION results_report_stays_removed();

CREATE FUNCTION results_upload_fits() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    of_it results_report%ROWTYPE;
BEGIN
    SELECT * INTO STRICT of_it FROM results_report WHERE id = NEW.report_id;
    IF of_it.state = 'removed' OR NEW.shard > of_it.shards THEN
        RAISE EXCEPTION 'report % is % and has % shards: shard % does not fit',
            of_it.id, of_it.state, of_it.shards, NEW.shard
            USING ERRCODE = 'integrity_constraint_violation', CONSTRAINT = 'results_upload_fits';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER results_upload_fits BEFORE INSERT OR UPDATE OF shard, report_id ON results_upload
    FOR EACH ROW EXECUTE FUNCTION results_upload_fits();
"""
BACKWARD = """
DROP TRIGGER results_upload_fits ON results_upload;
DROP FUNCTION results_upload_fits();
DROP TRIGGER results_report_stays_removed ON results_report;
DROP FUNCTION results_report_stays_removed();
"""


class Migration(migrations.Migration):
    dependencies = [("results", "0004_reports")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
