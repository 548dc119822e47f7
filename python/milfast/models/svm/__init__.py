"""Support vector machines for bags, one file a model."""
