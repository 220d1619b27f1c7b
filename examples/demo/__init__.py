"""`make demo`: the main job on real parts, told act by act, and checked at the end."""
