#!/usr/bin/env python
"""Command line of the hub. Commands find a running hub's services or start them for as long as they run."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "accelhub.settings")
    from django.core.management import execute_from_command_line

    from accelhub.embedded import services_for_command

    with services_for_command(sys.argv):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
