"""The client for threads, made by `tools/make_sync.py`; two modules are written by hand."""
