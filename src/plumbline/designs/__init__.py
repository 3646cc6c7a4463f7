"""Initial designs: where a trial begins."""
