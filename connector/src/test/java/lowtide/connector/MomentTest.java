package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Which read point the option asOf means. */
class MomentTest {
    private static final long WORLD = 1_790_000_000_000_000_000L;

    /** Milliseconds are no timestamps of an oracle on the world's clock, and are told as the time that may be meant. */
    @Test
    void refusesMillisecondsOnTheWorldsClock() {
        String text = assertThrows(IllegalArgumentException.class, () ->
                Moment.stamp(1_700_000_000_000L, true)).getMessage();
        assertTrue(text.contains("asOf = 1700000000000 is no timestamp") && text.contains("2023-11-14T22:13:20Z"),
                text);
        assertEquals(WORLD - 50, Moment.stamp(WORLD - 50, true));
        assertEquals(1000, Moment.stamp(1000, false), "an oracle that counts");
    }

    /** Times are taken as ISO 8601 has them and as Lowtide prints them; what is told of a timestamp can be read at. */
    @Test
    void takesWhatItTells() {
        for (String time : new String[] {"2026-01-31T08:00:00.652Z", "2026-01-31 09:00:00.652+01:00",
            "2026-01-31 08:00:00.652 UTC"}) {
            assertEquals(1_769_846_400_652L, Moment.millis(time), time);
        }
        long mark = 1_769_846_400_651_999_999L;
        assertEquals(mark + " (2026-01-31T08:00:00.652Z)", Moment.described(mark));
        assertEquals("1049", Moment.described(1049));
    }

    /** A time without zone is told what it lacks; what is no time is told what is expected. */
    @Test
    void namesWhatIsMissing() {
        String naive = assertThrows(IllegalArgumentException.class, () ->
                Moment.millis("2026-01-31 08:00:00")).getMessage();
        assertTrue(naive.contains("has no time zone; add one, as in 2026-01-31T08:00:00Z"), naive);
        String other = assertThrows(IllegalArgumentException.class, () -> Moment.millis("yesterday")).getMessage();
        assertTrue(other.contains("asOf = yesterday is neither a timestamp of the oracle nor an ISO 8601 time"), other);
    }
}
