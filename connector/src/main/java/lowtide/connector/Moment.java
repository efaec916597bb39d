package lowtide.connector;

import java.io.IOException;
import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import org.apache.hadoop.hbase.client.Connection;

/** The option {@code asOf}: which read point it means. */
final class Moment {
    private Moment() {
    }

    /**
     * The read point; {@link Long#MAX_VALUE} for a time behind all timestamps. {@code world}: of {@link
     * OracleClock#isWorld}.
     */
    static long of(Connection connection, Options options, long watermark, boolean world) throws IOException {
        String asked = options.asOf.trim();
        if (asked.equalsIgnoreCase("latest")) {
            return watermark;
        }
        if (asked.matches("\\d+")) {
            try {
                return stamp(Long.parseLong(asked), world);
            } catch (NumberFormatException e) {
                return Long.MAX_VALUE;
            }
        }
        long millis = millis(asked);
        return world ? ofWorld(asked, millis) : ofCounter(connection, options, millis);
    }

    /**
     * A timestamp that was given as a number; milliseconds where the oracle's clock is the world's would show nothing.
     */
    static long stamp(long given, boolean world) {
        if (world && !OracleClock.isWorlds(given)) {
            throw new IllegalArgumentException("Option asOf = " + given + " is no timestamp of this oracle: they count"
                    + " nanoseconds since 1970 (milliseconds with six more digits). Give the time as ISO 8601 instead;"
                    + " if these are milliseconds, asOf = " + Instant.ofEpochMilli(given) + ".");
        }
        return given;
    }

    /**
     * A timestamp for people: with its time where it can only be a world clock's, rounded up so that it can be read at.
     */
    static String described(long timestamp) {
        return !OracleClock.isWorlds(timestamp) || timestamp == Long.MAX_VALUE ? String.valueOf(timestamp)
                : timestamp + " (" + Instant.ofEpochMilli((timestamp - 1) / OracleClock.UNITS_PER_MILLI + 1) + ")";
    }

    /** Milliseconds since 1970 of an ISO 8601 time with zone; a space may stand for the T, and " UTC" for the zone. */
    static long millis(String asked) {
        String text = asked.replaceFirst(" UTC$", "Z").replaceFirst("^(\\S+) ", "$1T");
        try {
            return OffsetDateTime.parse(text).toInstant().toEpochMilli();
        } catch (DateTimeException e) {
            if (isLocal(text)) {
                throw new IllegalArgumentException("Option asOf = " + asked + " has no time zone; add one, as in "
                        + text + "Z.", e);
            }
            throw new IllegalArgumentException("Option asOf = " + asked + " is neither a timestamp of the oracle"
                    + " nor an ISO 8601 time with zone such as 2026-01-31T00:00:00Z, nor latest.", e);
        }
    }

    private static boolean isLocal(String text) {
        try {
            LocalDateTime.parse(text);
            return true;
        } catch (DateTimeException e) {
            return false;
        }
    }

    static long ofWorld(String asked, long millis) {
        if (millis < OracleClock.WORLD_MIN / OracleClock.UNITS_PER_MILLI) {
            throw new IllegalArgumentException("Option asOf = " + asked
                    + " is before any timestamp that an oracle on the world's clock has given.");
        }
        return millis > Long.MAX_VALUE / OracleClock.UNITS_PER_MILLI ? Long.MAX_VALUE
                : Omid.start(millis * OracleClock.UNITS_PER_MILLI);
    }

    static long ofCounter(Connection connection, Options options, long millis) throws IOException {
        if (millis > System.currentTimeMillis()) {
            throw new IllegalArgumentException("Option asOf = " + options.asOf
                    + " is not over yet; read now with asOf = latest.");
        }
        long reached = Records.sampled(connection, options, millis);
        if (reached < 0) {
            throw new IllegalArgumentException("Option asOf = " + options.asOf + " is before the first time sample of"
                    + " an oracle that counts: give its timestamp, or run watermark_collection regularly.");
        }
        return Omid.start(reached);
    }
}
