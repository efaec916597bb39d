package lowtide.connector;

import java.io.Serializable;
import java.util.Arrays;

/** A fixed set of numbers with a look-up that neither boxes nor allocates. */
final class LongSet implements Serializable {
    private static final long serialVersionUID = 1;
    private final long[] sorted;
    private final long[] slots;
    private final boolean[] taken;
    private final int mask;

    LongSet(long... values) {
        sorted = Arrays.stream(values).sorted().distinct().toArray();
        int capacity = Integer.highestOneBit(Math.max(1, sorted.length)) << 2;
        slots = new long[capacity];
        taken = new boolean[capacity];
        mask = capacity - 1;
        for (long value : sorted) {
            int slot = slot(value);
            while (taken[slot]) {
                slot = (slot + 1) & mask;
            }
            taken[slot] = true;
            slots[slot] = value;
        }
    }

    private int slot(long value) {
        long mixed = value * 0x9E3779B97F4A7C15L;
        return (int) (mixed >>> 32) & mask;
    }

    boolean isEmpty() {
        return sorted.length == 0;
    }

    /** The members, ascending. */
    long[] values() {
        return sorted;
    }

    boolean contains(long value) {
        if (sorted.length == 0 || value < sorted[0] || value > sorted[sorted.length - 1]) {
            return false;
        }
        for (int slot = slot(value); taken[slot]; slot = (slot + 1) & mask) {
            if (slots[slot] == value) {
                return true;
            }
        }
        return false;
    }

    @Override
    public String toString() {
        return sorted.length <= 5 ? Arrays.toString(sorted) : sorted.length + " values";
    }
}
