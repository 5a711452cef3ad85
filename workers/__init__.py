"""Slow, independent pieces of work that come through Kafka: how they are run, side by side and without loss.

A library beneath `tiering`: it imports nothing of ours, and its handlers know nothing of Kafka.
"""
