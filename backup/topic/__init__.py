"""Replays a plan's range into another topic, on this cluster or another, exactly once.

    outgoing      a batch as it is sent on: its compressed records untouched where that can be (pure)
    encode        a batch made anew, where some of its records stay behind (pure)
    messages      the requests that a transactional writer makes, and their answers, as tables
    writer        those requests, in the order that the transactional protocol wants them
    offset_map    which source offset became which target offset (pure)
    progress      how far a replay came, as records in the same transactions as what they speak of
    replay        reads, sends, commits; begins where the last commit ended
    source        whether what would be read is there, before anything is sent
    target        what the target topic must be like
    groups        consumer groups' positions by the map (pure); `groups/kafka` asks and sets them
    parquet       the map as a file

librdkafka would open every batch and compress it anew. Here the payload goes from one topic to the other as
it is, so that codec, times, headers and keys are the same bytes.

Invariant: a consumer of committed records finds each committed record of the range once, in its order,
whatever was killed meanwhile; and the map names it.
"""
