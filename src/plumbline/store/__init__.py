"""The store of trials: specs, keys, folders, records, provenance."""
