"""Chaos: everything that can meet meets, from one seed, and a judge of its own says whether any of it was wrong.

``plan``       what is to happen: pure, from a seed; it can be printed, and cut down
``nemeses``    what fails meanwhile, and where: pure, from the seed too
``striking``   how that is broken and put back
``lying``      relays that lie
``director``   lets it happen, one step at a time, in an order that the plan alone gives (the *baton*)
``laboratory`` the store, Spark and the jobs that it happens with
``judge``      what must be true of it: own code, which imports nothing of Lowtide
``cutting``    from a plan that fails to a small one that still does
``free``       the other mode: real processes at the same time, recorded and judged afterwards

``python -m tests.chaos`` runs seeds by hand (``make chaos``); ``tests/store/test_chaos.py`` runs some where
``LOWTIDE_CHAOS_SEEDS`` says how many.
"""
