"""What does an installation withstand: an outage, disturbances, bad neighbours, a long history?"""
