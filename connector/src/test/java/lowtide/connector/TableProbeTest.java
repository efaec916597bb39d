package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Random;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class TableProbeTest {
    /** The middle of two rows lies above the lower one and not above the higher one. */
    @Test
    void theMiddleLiesBetween() {
        Random random = new Random(3);
        for (int i = 0; i < 100_000; i++) {
            byte[] one = new byte[random.nextInt(12)];
            byte[] other = new byte[random.nextInt(12)];
            random.nextBytes(one);
            random.nextBytes(other);
            if (random.nextBoolean()) {
                System.arraycopy(one, 0, other, 0, Math.min(one.length, other.length));
            }
            byte[] low = Bytes.compareTo(one, other) <= 0 ? one : other;
            byte[] high = low == one ? other : one;
            byte[] middle = TableProbe.middle(low, high);
            assertTrue(Bytes.compareTo(middle, low) >= 0, () -> text(low, middle, high));
            assertTrue(Bytes.compareTo(middle, high) <= 0 || starts(middle, high), () -> text(low, middle, high));
        }
    }

    /** Trailing zeros only: no row lies between the two. */
    private static boolean starts(byte[] middle, byte[] high) {
        for (int i = high.length; i < middle.length; i++) {
            if (middle[i] != 0) {
                return false;
            }
        }
        return Arrays.equals(middle, 0, Math.min(middle.length, high.length), high, 0,
                Math.min(middle.length, high.length));
    }

    private static String text(byte[] low, byte[] middle, byte[] high) {
        return Bytes.toStringBinary(low) + " " + Bytes.toStringBinary(middle) + " " + Bytes.toStringBinary(high);
    }
}
