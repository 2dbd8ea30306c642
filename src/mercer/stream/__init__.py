"""Streams by moments: rows join the moments of a span that may grow, and leave as they fade.

The rows of a stream are projected on a span (`dictionary`, or `FixedSpan` of given vectors), their
moments are kept (`moments`), and the components follow from these whenever they are wanted
(`components`, whose `State` goes along the rows and keeps what the next ones need).
"""
