import datetime

import django.db.models.expressions
from django.db import migrations, models

# Of a comparison that has begun before modes were told apart: long ago, in the mode in which most depends on it.
BEGUN_AT = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


class Migration(migrations.Migration):
    dependencies = [
        ("relay", "0010_delivery_recent"),
    ]

    operations = [
        migrations.AddField(
            model_name="deliverylog",
            name="begun_at",
            field=models.DateTimeField(default=BEGUN_AT),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="deliverylog",
            name="mode",
            field=models.CharField(default="active", max_length=20),
            preserve_default=False,
        ),
        migrations.CreateModel(
            name="UnreadLog",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("cursor", models.CharField(max_length=200)),
                ("is_forgotten", models.BooleanField(default=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("until__gte", django.db.models.expressions.F("since"))),
                        name="relay_unread_log_forward",
                    )
                ],
            },
        ),
    ]
