"""Linear models of what a bag is summed up to, one file a model."""
