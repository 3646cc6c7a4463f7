"""The atlas: trials of every method on every task as a versioned download, and what is learned from it."""
