"""Holds as people and findings place them: in our agents, in the bucket, in Kafka where the policy allows it.

retention       Kafka's own retention of a topic, unlimited as a declared change and put back at release
service         places, releases and lists, each of the three by itself: what one lacks, another may have
from_findings   which holds the findings of a run ask for
kafka           a topic's own settings, changed
"""
