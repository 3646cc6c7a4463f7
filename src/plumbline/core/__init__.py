"""Options, errors, files, random streams and observations: the base of every other folder."""
