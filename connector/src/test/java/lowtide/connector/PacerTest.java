package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class PacerTest {

    /** Bytes come no faster than the limit, however they are cut. */
    @Test
    void keepsToTheLimit() throws Exception {
        Pacer pacer = new Pacer(1_000_000);
        long begin = System.nanoTime();
        for (int i = 0; i < 10; i++) {
            pacer.took(10_000);
        }
        assertTrue(System.nanoTime() - begin >= 99_000_000, "100,000 bytes at 1,000,000 a second take 0.1 s");
    }

    /** A slow reader asks for little at a time; without a limit nothing changes. */
    @Test
    void asksForASecondsWorthAtMost() {
        assertEquals(100_000, new Pacer(100_000).chunk(2L << 20));
        assertEquals(2L << 20, new Pacer(1L << 30).chunk(2L << 20));
        assertEquals(2L << 20, new Pacer(0).chunk(2L << 20));
        assertFalse(new Pacer(0).limits());
    }
}
