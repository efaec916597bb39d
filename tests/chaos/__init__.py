"""Chaos: everything that can meet meets, from one seed, and a judge of its own says whether any of it was wrong.

``plan``       what is to happen: pure, from a seed; it can be printed, and cut down
``steps``      what a plan may consist of: pure, as are the next three
``worlds``     what plans are about
``scenes``     by that: what has to meet in an order that hardly comes by itself
``maker``      what both are made of
``nemeses``    what fails meanwhile, and where: pure, from the seed too
``striking``   how that is broken and put back
``lying``      relays that lie
``director``   lets it happen, one step at a time, in an order that the plan alone gives (the *baton*)
``actor``      a run of a job, which moves only while it has the baton
``tables``     what is done to the tables
``oracle*``    what becomes of the oracle
``people``     what people say of them
``ledger_*``   the ledger's clients: their steps, how they take them, a judge of their own; and all that in memory
``sql_*``      Apache Phoenix's: their steps, and what the judge is told of them
``laboratory`` the store, Spark and the jobs that it happens with
``judge``      what must be true of it: own code, which imports nothing of Lowtide
``cutting``    from a plan that fails to a small one that still does
``free``       the other mode: real processes at the same time, recorded and judged afterwards

``python -m tests.chaos`` runs seeds by hand (``make chaos``); ``tests/store/test_chaos.py`` runs some where
``LOWTIDE_CHAOS_SEEDS`` says how many.
"""
