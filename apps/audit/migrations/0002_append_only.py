"""PostgreSQL guards the log: it only grows, link by link, whoever is connected.

ENABLE ALWAYS: the triggers also fire under session_replication_role = replica.
"""

from django.db import migrations

FORWARD = r"""
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, repeat('0', 64));

CREATE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION audit_append() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    head audit_head%ROWTYPE;
BEGIN
    SELECT * INTO STRICT head FROM audit_head WHERE id = 1 FOR UPDATE;
    IF NEW.seq <> head.seq + 1 OR NEW.previous_hash <> head.hash THEN
        RAISE EXCEPTION 'audit event % does not follow event %', NEW.seq, head.seq
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.hash <> encode(sha256(convert_to(NEW.previous_hash || E'\n' || NEW.body, 'UTF8')), 'hex') THEN
        RAISE EXCEPTION 'audit event % has a wrong hash', NEW.seq USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION audit_move_head() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE audit_head SET seq = NEW.seq, hash = NEW.hash WHERE id = 1;
    RETURN NULL;
END $$;

CREATE FUNCTION audit_head_moves_with_events() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.id <> OLD.id OR NEW.seq <> OLD.seq + 1
        OR NOT EXISTS (SELECT 1 FROM audit_event WHERE seq = NEW.seq AND hash = NEW.hash) THEN
        RAISE EXCEPTION 'the head of the audit log moves only with an event'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER audit_event_append BEFORE INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION audit_append();
CREATE TRIGGER audit_event_moves_head AFTER INSERT ON audit_event FOR EACH ROW EXECUTE FUNCTION audit_move_head();
CREATE TRIGGER audit_event_refuse BEFORE UPDATE OR DELETE ON audit_event FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_event_refuse_truncate BEFORE TRUNCATE ON audit_event EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_moves BEFORE UPDATE ON audit_head
    FOR EACH ROW EXECUTE FUNCTION audit_head_moves_with_events();
CREATE TRIGGER audit_head_refuse BEFORE INSERT OR DELETE ON audit_head FOR EACH ROW EXECUTE FUNCTION audit_refuse();
CREATE TRIGGER audit_head_refuse_truncate BEFORE TRUNCATE ON audit_head EXECUTE FUNCTION audit_refuse();

ALTER TABLE audit_event ENABLE ALWAYS TRIGGER audit_event_append;
ALTER TABLE audit_event ENABLE ALWAYS TRIGGER audit_event_moves_head;
ALTER TABLE audit_event ENABLE ALWAYS TRIGGER audit_event_refuse;
ALTER TABLE audit_event ENABLE ALWAYS TRIGGER audit_event_refuse_truncate;
ALTER TABLE audit_head ENABLE ALWAYS TRIGGER audit_head_moves;
ALTER TABLE audit_head ENABLE ALWAYS TRIGGER audit_head_refuse;
ALTER TABLE audit_head ENABLE ALWAYS TRIGGER audit_head_refuse_truncate;
"""


class Migration(migrations.Migration):
    dependencies = [("audit", "0001_initial")]
    # No way back: a log that can be unguarded by a migration is not guarded.
    operations = [migrations.RunSQL(FORWARD)]
