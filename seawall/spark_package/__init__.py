"""What a Spark cluster that is not here is given to run Seawall: `seawall spark package`.

    entry.py              the script that spark-submit starts; `entry` is what it calls
    environment.tar.gz    bin/python, and lib/ with every package as pinned, Seawall among them
    jars/                 the jars of the classpaths `spark` and `s3a`, as pinned
    SHA256SUMS            of all of these

Owns the making of it (`contents`, `site`, `archive`), the words that submit it (`submit`), and what happens
in its driver before Seawall does (`entry`). pyspark and py4j are the cluster's own and not in it.
"""
