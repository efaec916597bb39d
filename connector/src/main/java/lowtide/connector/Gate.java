package lowtide.connector;

/**
 * What all tasks of a run pass that keep to a rate together, one after another: each request takes the gate for as
 * long as its cells or mutations may take at the rate of their table, and begins when those before it are through.
 *
 * <p>Guarantees: whoever passes with what he is about to ask for, and waits as he is told, begins no request while the
 * gate is taken. So in any window of time what begins is at most what the rate allows for it, and the one request that
 * was let in at its beginning; with several rates, the shares of them sum up to no more than that. What was let in may be
 * answered later, and one portion of each task that reads at that time be among it. Time in which nobody passed is never
 * made up for. Nobody waits for anybody but those before him: a lone task has the whole rate.
 *
 * <p>Not Guava's limiter, since that one blocks where it is asked: here the driver is asked by executors, must answer at
 * once, and waiting is up to the task. Nothing here waits, or knows a clock.
 */
final class Gate {
    /** Until when it is taken. */
    private long free = Long.MIN_VALUE;
    /** Until when somebody waits. */
    private long waitedUntil = Long.MIN_VALUE;
    private long waited;

    /**
     * Lets a request pass.
     *
     * @param now the time in ns, of any clock that does not go back
     * @param nanos for how long it takes the gate; below 0 gives back what was taken in vain
     * @return in how many ns it may begin
     */
    synchronized long pass(long now, long nanos) {
        if (nanos < 0) {
            free += free == Long.MIN_VALUE ? 0 : nanos;
            return 0;
        }
        long begin = Math.max(now, free);
        free = begin + nanos;
        waited += Math.max(0, begin - Math.max(now, waitedUntil));
        waitedUntil = Math.max(waitedUntil, begin);
        return begin - now;
    }

    /** For how many ns somebody waited, or will have; what several waited at the same time counts once. */
    synchronized long waited() {
        return waited;
    }
}
