package lowtide.connector;

/**
 * The option {@code clock}, as {@code omid.clock} of Lowtide's configuration: which clock the oracle's timestamps are
 * of. The rule is that of {@code lowtide.values.clock}.
 */
enum OracleClock {
    AUTO, WORLD, INCREMENTAL;

    /** The least timestamp that only an oracle on the world's clock gives. */
    static final long WORLD_MIN = 100_000_000_000_000_000L;
    static final long UNITS_PER_MILLI = 1_000_000L;

    /** Whether a timestamp can only be a world clock's. */
    static boolean isWorlds(long timestamp) {
        return timestamp >= WORLD_MIN;
    }

    /**
     * Whether the oracle is on the world's clock, by its low watermark where the option leaves it open; an error where
     * the two contradict each other: what plain puts and transactions have written would be mistaken for each other.
     */
    boolean isWorld(long watermark) {
        boolean contradicted = this == INCREMENTAL && isWorlds(watermark)
                || this == WORLD && watermark > 0 && !isWorlds(watermark);
        if (contradicted) {
            throw new IllegalArgumentException("Option clock = " + (this == WORLD ? "world" : "incremental")
                    + " (omid.clock in Lowtide's configuration), and the oracle's low watermark is " + watermark
                    + ", which is "
                    + (this == WORLD ? "a counter's. Say incremental" : "a world clock's nanoseconds. Say world")
                    + ", or auto.");
        }
        return this == WORLD || this == AUTO && isWorlds(watermark);
    }
}
