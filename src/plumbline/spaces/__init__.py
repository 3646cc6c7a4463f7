"""Where a method may look: boxes, tables of rows, and blocks of inputs that change together."""
