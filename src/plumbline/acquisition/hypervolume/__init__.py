"""Expected hypervolume improvement of several objectives."""
