"""WSGI entry point. An unsafe configuration stops here, whoever started the server."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")

from django.core.wsgi import get_wsgi_application

from accelhub.checks import refuse_unsafe

application = get_wsgi_application()
refuse_unsafe()
