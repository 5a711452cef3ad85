"""The object store: what may be asked of it, how it is asked patiently, and how a segment gets there.

interface.py    values and the port: one method a request, one attempt each
errors.py       what can come of a request, each class with whether it is worth another attempt
s3.py           the port over boto3, the only module here that knows it
retry.py, throttle.py, patient.py    attempts, deadlines and the byte rate, around any store
keys.py         where a segment's objects stand; aux_file.py what its `.aux` holds
upload.py       a segment's file to an object whose size and checksum were read back

Invariants (DESIGN, T3 and T5): no request here can overwrite an object or remove a version of one, and no
object is returned whose size and checksum, as the store has them, are not those of the bytes that were
verified.
"""
