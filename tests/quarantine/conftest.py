"""Reports that are read for real need a folder of their own."""

from tests.results.conftest import storage_folder

__all__ = ["storage_folder"]
