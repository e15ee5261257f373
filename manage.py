#!/usr/bin/env python
"""Command line of the hub. Commands find a running hub's services or start them for as long as they run."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")
    if sys.argv[1:2] == ["up"] and "--no-demo" in sys.argv:
        os.environ["ACCELHUB_DEMO"] = "0"  # before settings read it

    from django.conf import settings
    from django.core.management import execute_from_command_line

    from accelhub.embedded import services_for_command
    from accelhub.env import SettingError

    try:
        settings.INSTALLED_APPS  # noqa: B018  reads the whole environment, before anything starts
    except SettingError as error:
        sys.exit(str(error))

    with services_for_command(sys.argv):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
