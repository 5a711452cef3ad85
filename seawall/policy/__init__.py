"""The policy outside of memory: its file, the topic that holds what was declared, and the cluster beside it.

`file` reads policy.toml and `toml_text` writes it. `change_log` is where declared changes are kept, for
ever. `cluster` is what brokers really do, `compare` lays it beside what was declared, `plan` is what applying
a file would change. What a policy *is* stands in `rules.policy`, which knows nothing of all this.
"""
