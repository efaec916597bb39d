package lowtide.connector;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * The transactions whose shadow cells a reader met, of one family and piece: the view {@code versions}' column
 * {@code shadow_starts}.
 *
 * <p>Guarantees: every start timestamp that was added is in it, whatever the shadow cell's form, and no other; or it
 * is given up, and tells nothing. It is exact: one that lacks a timestamp would be taken for an abort, and one that is
 * wrong in a case of a million would have tables of many regions read again nearly always.
 *
 * <p>As bytes it is the differences of the ascending start timestamps, seven bits a byte: some five bytes each where
 * the oracle goes by a clock and a piece has a year of transactions. (A Roaring bitmap takes many times that: hardly
 * two of them are near each other.)
 */
final class ShadowStarts {
    /** Transactions after which it is given up; while it grows it has room for twice as many in memory. */
    static final int MOST = 1 << 21;

    private final int most;
    /** Null where it was given up. */
    private long[] starts = new long[64];
    private int size;
    private long last = Omid.NONE;

    ShadowStarts(int most) {
        this.most = most;
    }

    /** Adds the transaction that wrote at this timestamp. Neighbours in a row mostly are of one. */
    void add(long timestamp) {
        long start = Omid.start(timestamp);
        if (start == last || starts == null) {
            return;
        }
        last = start;
        if (size == starts.length) {
            makeRoom();
        }
        if (starts != null) {
            starts[size++] = start;
        }
    }

    private void makeRoom() {
        sort();
        if (size > most) {
            starts = null;
        } else if (size > starts.length / 2) {
            starts = Arrays.copyOf(starts, 2 * starts.length);
        }
    }

    /** Sorts what was added, each once. */
    private void sort() {
        Arrays.sort(starts, 0, size);
        int kept = 0;
        for (int i = 0; i < size; i++) {
            if (i == 0 || starts[i] != starts[i - 1]) {
                starts[kept++] = starts[i];
            }
        }
        size = kept;
    }

    /** For {@link #hasAny}; null: it was given up. */
    byte[] bytes() {
        if (starts != null) {
            sort();
        }
        if (starts == null || size > most) {
            return null;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream(6 * size);
        long before = 0;
        for (int i = 0; i < size; i++) {
            long later = starts[i] - before;
            for (; (later & ~0x7FL) != 0; later >>>= 7) {
                bytes.write((int) (later & 0x7F | 0x80));
            }
            bytes.write((int) later);
            before = starts[i];
        }
        return bytes.toByteArray();
    }

    /**
     * Whether one of the transactions sought is in it; true where it was given up: nobody knows.
     *
     * @param kept of {@link #bytes}
     * @param sought start timestamps in ascending order, eight bytes each, big-endian
     */
    static boolean hasAny(byte[] kept, byte[] sought) {
        if (kept == null) {
            return true;
        }
        ByteBuffer wanted = ByteBuffer.wrap(sought);
        long start = 0;
        for (int at = 0; at < kept.length && wanted.hasRemaining();) {
            long later = 0;
            for (int shift = 0;; shift += 7) {
                byte part = kept[at++];
                later |= (part & 0x7FL) << shift;
                if (part >= 0) {
                    break;
                }
            }
            start += later;
            while (wanted.hasRemaining() && wanted.getLong(wanted.position()) < start) {
                wanted.getLong();
            }
            if (wanted.hasRemaining() && wanted.getLong(wanted.position()) == start) {
                return true;
            }
        }
        return false;
    }
}
