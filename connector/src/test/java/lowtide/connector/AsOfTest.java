package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** What is asked for the commit of a cell without shadow cell. */
class AsOfTest {
    private static final long WORLD = OracleClock.WORLD_MIN;
    /** One that would fail the read for whatever it let go of. */
    private static final Journal KNOWS = new Journal(null) {
        private static final long serialVersionUID = 1;

        @Override
        long of(long timestamp) {
            return 7;
        }
    };

    private static long proof(boolean world, long timestamp) throws IOException {
        return new AsOf(WORLD, world, Commits.NONE, KNOWS, 0, new TreeMap<>()).proof(timestamp);
    }

    /** A plain put's milliseconds in a table of a world clock's transactions; a counter may have given any number. */
    @Test
    void theJournalIsNotAskedAboutWhatNoOracleWrote() throws IOException {
        assertEquals(Omid.NONE, proof(true, WORLD - 1));
        assertEquals(7, proof(true, WORLD));
        assertEquals(7, proof(false, WORLD - 50));
    }
}
