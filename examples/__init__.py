"""Small services that use the library: run each as `python -m examples.NAME --help`."""
