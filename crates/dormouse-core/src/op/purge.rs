//! purge: remove all resting jobs of a topic and free their keys. Leased jobs stay.
