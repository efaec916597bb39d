package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class ShadowStartsTest {
    private static byte[] bytes(long... starts) {
        ByteBuffer bytes = ByteBuffer.allocate(starts.length * Long.BYTES);
        for (long start : starts) {
            bytes.putLong(start);
        }
        return bytes.array();
    }

    /** Of a counter's timestamps, and of a clock's, all and only those that were added are found, also from bytes. */
    @Test
    void findsAllAndOnlyWhatWasAdded() {
        for (long base : new long[] {0, 50_000, 1_795_634_944_443_000_000L, Long.MAX_VALUE / 50 * 50 - 500_000}) {
            for (int seed = 0; seed < 40; seed++) {
                Random random = new Random(seed);
                Set<Long> added = new TreeSet<>();
                ShadowStarts starts = new ShadowStarts(ShadowStarts.MOST);
                for (int i = random.nextInt(2000); i > 0; i--) {
                    long timestamp = base + random.nextInt(seed % 2 == 0 ? 100_000 : 3_000);
                    added.add(timestamp / 50 * 50);
                    starts.add(timestamp);
                }
                byte[] kept = starts.bytes();
                for (long start = base / 50 * 50; start < base + 100_000; start += 50) {
                    assertEquals(added.contains(start), ShadowStarts.hasAny(kept, bytes(start)), start + ", seed " + seed);
                }
            }
        }
    }

    /** Any of several is enough, and of none there is none. */
    @Test
    void oneOfThoseSoughtIsEnough() {
        ShadowStarts starts = new ShadowStarts(ShadowStarts.MOST);
        assertFalse(ShadowStarts.hasAny(starts.bytes(), bytes(50, 100)));
        starts.add(149);
        starts.add(7_049);
        assertTrue(ShadowStarts.hasAny(starts.bytes(), bytes(50, 100, 150)));
        assertTrue(ShadowStarts.hasAny(starts.bytes(), bytes(50, 150, 7_000)));
        assertFalse(ShadowStarts.hasAny(starts.bytes(), bytes(50, 150, 6_950, 7_050)));
        assertFalse(ShadowStarts.hasAny(starts.bytes(), bytes()));
    }

    /** One that met more transactions than it keeps is given up, and may have any; the same ones again do not count. */
    @Test
    void oneThatMetTooManyMayHaveAny() {
        for (int many : new int[] {99, 100, 101, 1000, 100_000}) {
            ShadowStarts starts = new ShadowStarts(100);
            for (int again = 0; again < 3; again++) {
                for (long i = 0; i < many; i++) {
                    starts.add(i * 7_919 % many * 50);
                }
            }
            if (many <= 100) {
                assertFalse(ShadowStarts.hasAny(starts.bytes(), bytes(many * 50L)));
                assertTrue(ShadowStarts.hasAny(starts.bytes(), bytes((many - 1) * 50L)));
            } else {
                assertNull(starts.bytes(), many + " transactions");
            }
        }
        assertTrue(ShadowStarts.hasAny(null, bytes(50)));
        assertTrue(ShadowStarts.hasAny(null, bytes()));
    }
}
