"""What pages print, typed as it is printed."""
