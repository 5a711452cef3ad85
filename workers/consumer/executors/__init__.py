"""Who runs handlers: threads, an event loop, or processes that hold one of these, behind one interface.

Threads are for handlers that wait. The event loop is for those that wait and are written for it: it holds
thousands at a tenth of the cost. Processes are for handlers that compute: in one process Python runs one at a
time, and more threads only make that slower. They cost a pickled record each way and want importable
handlers.
"""
