"""What does an audit cost, and is it ever wrong?"""
