"""Speed, as ratios: both sides in one run, on one machine, in turns."""
