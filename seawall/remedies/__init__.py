"""What can be done about a finding, step by step: `seawall remediate`.

steps     a step as a value, and which steps a finding has, from what was looked at
look      what the cluster says now of the log that the finding is about
kafka     the steps that the verb does itself
"""
