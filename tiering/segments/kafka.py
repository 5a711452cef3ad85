"""The topic of metadata over Kafka: everything that an agent or a verb needs of it, from one place.

    ensure_topic, check_topic    the topic, made and checked, or only checked
    KafkaAppender                writes
    Follower                     reads for ever; topic_ends and empty_table are what it begins with
    replay                       reads once to the end; read_to for who has a table of another kind

Owns nothing; the modules behind it do.
"""

from __future__ import annotations

from tiering.segments.append.kafka import KafkaAppender
from tiering.segments.follow.kafka import Follower, empty_table, read_to, replay
from tiering.segments.topic import PARTITIONS, TOPIC, SegmentsTopic
from tiering.segments.topic.kafka import check_topic, ensure_topic, topic_ends

__all__ = [
    "PARTITIONS",
    "TOPIC",
    "Follower",
    "KafkaAppender",
    "SegmentsTopic",
    "check_topic",
    "empty_table",
    "ensure_topic",
    "read_to",
    "replay",
    "topic_ends",
]
