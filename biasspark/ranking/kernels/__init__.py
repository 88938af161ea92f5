"""The arithmetic of the ranking, on arrays. numpy only."""
