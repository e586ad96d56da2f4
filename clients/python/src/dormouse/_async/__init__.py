"""The client for asyncio; `tools/make_sync.py` makes the one for threads, `_sync`, from it."""
