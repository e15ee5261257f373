import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('governance', '0002_put_back_and_alarms'),
    ]

    operations = [
        migrations.AddField(
            model_name='notice',
            name='next_attempt_at',
            # What waits is due.
            field=models.DateTimeField(default=django.utils.timezone.now),
            preserve_default=False,
        ),
    ]
