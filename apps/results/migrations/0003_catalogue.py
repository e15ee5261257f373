"""The catalogue of tests and skip messages, which only grows.

ENABLE ALWAYS: the triggers also fire under session_replication_role = replica.
"""

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models

# One alias is written at a time (the lock's two numbers are any that nobody else uses), so that two make no chain.
FORWARD = r"""
CREATE FUNCTION results_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the catalogue only grows: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END $$;

CREATE FUNCTION results_alias_unchained() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(74051200, 3);
    IF EXISTS (SELECT 1 FROM results_alias WHERE id <> NEW.id AND (old_id = NEW.new_id OR new_id = NEW.old_id)) THEN
        RAISE EXCEPTION 'aliases form no chains: test % or % already stands in another', NEW.old_id, NEW.new_id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER results_test_refuse BEFORE UPDATE OR DELETE ON results_test
    FOR EACH ROW EXECUTE FUNCTION results_refuse();
CREATE TRIGGER results_test_refuse_truncate BEFORE TRUNCATE ON results_test EXECUTE FUNCTION results_refuse();
CREATE TRIGGER results_reason_refuse BEFORE UPDATE OR DELETE ON results_reason
    FOR EACH ROW EXECUTE FUNCTION results_refuse();
CREATE TRIGGER results_reason_refuse_truncate BEFORE TRUNCATE ON results_reason EXECUTE FUNCTION results_refuse();
CREATE TRIGGER results_alias_unchained BEFORE INSERT OR UPDATE ON results_alias
    FOR EACH ROW EXECUTE FUNCTION results_alias_unchained();

ALTER TABLE results_test ENABLE ALWAYS TRIGGER results_test_refuse;
ALTER TABLE results_test ENABLE ALWAYS TRIGGER results_test_refuse_truncate;
ALTER TABLE results_reason ENABLE ALWAYS TRIGGER results_reason_refuse;
ALTER TABLE results_reason ENABLE ALWAYS TRIGGER results_reason_refuse_truncate;
ALTER TABLE results_alias ENABLE ALWAYS TRIGGER results_alias_unchained;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('results', '0002_unheard'),
    ]

    operations = [
        TrigramExtension(),
        migrations.CreateModel(
            name='Reason',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.UUIDField(unique=True)),
                ('text', models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name='Test',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.UUIDField(unique=True)),
                ('file', models.TextField(blank=True)),
                ('class_name', models.TextField(blank=True)),
                ('name', models.TextField(blank=True)),
            ],
        ),
        migrations.CreateModel(
            name='SearchedTest',
            fields=[
                ('test', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='searched', serialize=False, to='results.test')),
                ('words', models.TextField()),
            ],
            options={
                'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['words'], name='results_searched_words', opclasses=['gin_trgm_ops'])],
            },
        ),
        migrations.CreateModel(
            name='Alias',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(max_length=500)),
                ('by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField()),
                ('new', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='earlier', to='results.test')),
                ('old', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='alias', to='results.test')),
            ],
            options={
                'verbose_name_plural': 'aliases',
                'constraints': [models.CheckConstraint(condition=models.Q(('old', models.F('new')), _negated=True), name='results_alias_of_another'), models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='results_alias_reason')],
            },
        ),
        # No way back: outcomes on disk name the catalogue's rows by number.
        migrations.RunSQL(FORWARD),
    ]
