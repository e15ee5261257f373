"""`python3 client report upload …`: the client as it lies here, without installing it."""

import sys

from accelhub_client.cli import main

sys.exit(main())
