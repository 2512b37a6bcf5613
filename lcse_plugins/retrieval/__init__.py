"""Finding the best of many."""
