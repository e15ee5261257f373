"""Checkpoints are append-only as events are; and the head moves by whoever owns the tables, whoever is connected.

The functions that lock and move the head run as their owner (SECURITY DEFINER, with a search path that nobody can put
anything in front of), so the role that the hub runs as needs nothing but SELECT and INSERT on the log.
"""

from django.db import migrations

FORWARD = r"""
CREATE FUNCTION audit_append_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    last audit_checkpoint%ROWTYPE;
BEGIN
    SELECT * INTO last FROM audit_checkpoint ORDER BY number DESC LIMIT 1;
    IF NEW.number <> coalesce(last.number, 0) + 1 OR NEW.seq < coalesce(last.seq, 1)
        OR NEW.previous <> coalesce(encode(sha256(convert_to(last.text, 'UTF8')), 'hex'), repeat('0', 64)) THEN
        RAISE EXCEPTION 'checkpoint % does not follow checkpoint %', NEW.number, coalesce(last.number, 0)
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM audit_event WHERE seq = NEW.seq AND hash = NEW.hash) THEN
        RAISE EXCEPTION 'checkpoint % names no event of the log', NEW.number
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER audit_checkpoint_append BEFORE INSERT ON audit_checkpoint
    FOR EACH ROW EXECUTE FUNCTION audit_append_checkpoint();
CREATE TRIGGER audit_checkpoint_refuse BEFORE UPDATE OR DELETE ON audit_checkpoint
    FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_checkpoint_refuse_truncate BEFORE TRUNCATE ON audit_checkpoint EXECUTE FUNCTION audit_refuse();
ALTER TABLE audit_checkpoint ENABLE ALWAYS TRIGGER audit_checkpoint_append;
ALTER TABLE audit_checkpoint ENABLE ALWAYS TRIGGER audit_checkpoint_refuse;
ALTER TABLE audit_checkpoint ENABLE ALWAYS TRIGGER audit_checkpoint_refuse_truncate;

CREATE FUNCTION audit_lock_head() RETURNS audit_head LANGUAGE sql AS $$
    SELECT * FROM audit_head WHERE id = 1 FOR UPDATE
$$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['audit_append', 'audit_move_head', 'audit_lock_head'] LOOP
        EXECUTE format(
            'ALTER FUNCTION %I() SECURITY DEFINER SET search_path = pg_catalog, %I, pg_temp', name, current_schema()
        );
    END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0006_checkpoints")]
    # No way back: a log that can be unguarded by a migration is not guarded.
    operations = [migrations.RunSQL(FORWARD)]
