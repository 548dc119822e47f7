"""Deep models, one file each; a file belongs to the registry when it assigns NAME."""
