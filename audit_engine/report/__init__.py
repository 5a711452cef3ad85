"""A run as a page that people can read: one HTML file, made from what the tables hold.

values      what a report is made of
incidents   findings as incidents, the worst first
logmap      what a picture of a log shows; drawing, trend: the pictures
changes     what is otherwise than after the run before
repair      what to do about a finding, as commands
logs        every log, for the page's table
sections, cards, page    the structure; assets: style, script and frame
markup      escaping
spark       the gathering from the tables
"""
