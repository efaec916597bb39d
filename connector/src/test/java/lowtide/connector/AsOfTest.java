package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import org.junit.jupiter.api.Test;

/** What is asked for the commit of a cell without shadow cell. */
class AsOfTest {
    private static final long WORLD = Moment.WORLD_CLOCK_MIN;
    /** One that would fail the read for whatever it let go of. */
    private static final Journal KNOWS = new Journal(null) {
        private static final long serialVersionUID = 1;

        @Override
        long of(long timestamp) {
            return 7;
        }
    };

    private static long proof(long snapshot, long timestamp) throws IOException {
        return new AsOf(snapshot, Commits.NONE, KNOWS, 0).proof(timestamp);
    }

    /** A plain put's milliseconds in a table of a world clock's transactions; a counter may have given any number. */
    @Test
    void theJournalIsNotAskedAboutWhatNoOracleWrote() throws IOException {
        assertEquals(Omid.NONE, proof(WORLD, WORLD - 1));
        assertEquals(7, proof(WORLD, WORLD));
        assertEquals(7, proof(WORLD - 1, WORLD - 50));
    }
}
