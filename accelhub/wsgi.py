"""WSGI entry point. An unsafe configuration stops here, whoever started the server."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")

import django

from accelhub.checks import refuse_unsafe
from accelhub.handler import Handler

django.setup(set_prefix=False)
application = Handler()
refuse_unsafe()
