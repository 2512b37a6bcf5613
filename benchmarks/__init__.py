"""What this project runs on itself: timing, Qdrant, tables. Not in the wheel."""
