"""Search spaces: boxes, boxes with steps, tables of rows, and blocks of inputs that change together."""
