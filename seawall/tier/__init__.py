"""The tier as a person looks at it: the topic of metadata followed for one verb, and what it comes to.

`following` opens the topic and reads it to its end, again whenever asked. `status` says of a log what is
where, `picture` draws it. What to do about leftovers is `tiering.orphans`'.
"""
