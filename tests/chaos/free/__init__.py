"""The second mode of chaos: real processes that run at the same time, and a judge that reads what was recorded of them.

``schedule``   what is to happen, and when: pure, from a seed
``processes``  runs of jobs and clients as processes of their own, which are killed, stopped and continued
``recording``  what happened, line by line, with the time of its beginning and its end; and what the store had
``conductor``  lets it happen
``judging``    what must be true of what was recorded: own code, from the folder alone, as often as one likes
``zombies``    runs that stand still after their decision, and go on when others have been there: pure, from a seed
``wakening``   lets these happen

``make chaos MODE=free SERVERS=3``, ``make chaos MODE=zombies``, ``python -m tests.chaos judge FOLDER``.
"""
