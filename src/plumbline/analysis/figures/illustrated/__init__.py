"""Figures of illustrations, one experiment each."""
