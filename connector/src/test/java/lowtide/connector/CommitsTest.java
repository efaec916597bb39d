package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class CommitsTest {

    /**
     * Entries come bucket by bucket, each ascending; any timestamp of a transaction finds its commit, no other does.
     */
    @Test
    void findsEntriesThatCameInAnyOrder() {
        int number = 5000; // more than there is room for at the beginning
        Commits.Gathered gathered = new Commits.Gathered(number);
        for (int bucket = 0; bucket < 16; bucket++) {
            for (int i = bucket; i < number; i += 16) {
                assertTrue(gathered.add(100L * i, 100L * i + 50));
            }
        }
        Commits commits = gathered.commits();
        assertEquals(number, commits.size());
        for (int i = 0; i < number; i++) {
            assertEquals(100L * i + 50, commits.of(100L * i + i % 50));
            assertEquals(Omid.NONE, commits.of(100L * i + 50));
        }
    }

    /** One more than the limit is told rather than kept. */
    @Test
    void tellsWhenThereAreTooMany() {
        Commits.Gathered gathered = new Commits.Gathered(2);
        assertTrue(gathered.add(0, 50));
        assertTrue(gathered.add(100, 150));
        assertFalse(gathered.add(200, 250));
        assertEquals(2, gathered.commits().size());
        assertEquals(Omid.NONE, Commits.NONE.of(100));
    }

    /** Of two rows for one transaction the last one read counts. */
    @Test
    void ofTwoRowsTheLastCounts() {
        Commits.Gathered gathered = new Commits.Gathered(10);
        gathered.add(101, 150);
        gathered.add(100, 250);
        assertEquals(250, gathered.commits().of(120));
    }
}
