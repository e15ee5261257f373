"""The client of an AccelHub: sends a CI job's test reports, asks what became of them. Standard library only."""

VERSION = "0.1.0"
