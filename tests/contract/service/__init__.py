"""The whole service beside a dictionary: any order of steps agrees."""
