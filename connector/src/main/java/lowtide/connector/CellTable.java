package lowtide.connector;

import java.util.Arrays;
import org.apache.hadoop.hbase.ByteBufferExtendedCell;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.util.ByteBufferUtils;

/**
 * Cells of one row and family, keyed on (qualifier, timestamp), in arrays that are used again and again: nothing is
 * allocated per cell. Cells are looked up in nearly the order in which they were added, so {@link #find} tries the
 * entry behind the last hit first, then a few beside it, and only then an index, which it builds when first needed.
 */
final class CellTable {
    private static final int NEAR = 8;

    private byte[] bytes = new byte[1 << 12];
    private int used;
    private int[] offsets = new int[64];
    private int[] lengths = new int[64];
    private long[] timestamps = new long[64];
    private long[] numbers = new long[64];
    private boolean[] marks = new boolean[64];
    private int[] valueLengths = new int[64];
    private Kind[] kinds = new Kind[64];
    private int size;
    private int marked;
    private int cursor;
    private int[] buckets = new int[0];
    private int mask;
    private boolean indexed;

    int size() {
        return size;
    }

    /** Bytes of qualifiers and values that are kept. */
    int bytesUsed() {
        return used;
    }

    void clear() {
        size = 0;
        used = 0;
        marked = 0;
        cursor = 0;
        indexed = false;
    }

    /** Adds a key with its number; the bytes are copied. */
    void add(byte[] array, int offset, int length, long timestamp, long number) {
        if (size == offsets.length) {
            grow();
        }
        reserve(length);
        int i = size++;
        System.arraycopy(array, offset, bytes, used, length);
        offsets[i] = used;
        lengths[i] = length;
        used += length;
        timestamps[i] = timestamp;
        numbers[i] = number;
        marks[i] = false;
        indexed = false;
    }

    /** Adds a data cell: its key, its kind and, if asked for, its value. */
    void add(byte[] array, int offset, int length, Cell cell, boolean withValue) {
        add(array, offset, length, cell.getTimestamp(), Omid.NONE);
        int i = size - 1;
        kinds[i] = Omid.kind(cell, length);
        valueLengths[i] = withValue ? cell.getValueLength() : -1;
        if (withValue) {
            reserve(valueLengths[i]);
            copyValue(cell, bytes, used);
            used += valueLengths[i];
        }
    }

    private void reserve(int length) {
        if (length > bytes.length - used) {
            bytes = Arrays.copyOf(bytes, (int) Math.min(Integer.MAX_VALUE - 8,
                    Math.max(2L * bytes.length, (long) used + length)));
        }
    }

    private void grow() {
        int capacity = 2 * size;
        offsets = Arrays.copyOf(offsets, capacity);
        lengths = Arrays.copyOf(lengths, capacity);
        timestamps = Arrays.copyOf(timestamps, capacity);
        numbers = Arrays.copyOf(numbers, capacity);
        marks = Arrays.copyOf(marks, capacity);
        valueLengths = Arrays.copyOf(valueLengths, capacity);
        kinds = Arrays.copyOf(kinds, capacity);
    }

    byte[] bytes() {
        return bytes;
    }

    int offset(int i) {
        return offsets[i];
    }

    int length(int i) {
        return lengths[i];
    }

    byte[] qualifier(int i) {
        return Arrays.copyOfRange(bytes, offsets[i], offsets[i] + lengths[i]);
    }

    /** The kept value of a data cell, or null if none was asked for. */
    byte[] value(int i) {
        int start = offsets[i] + lengths[i];
        return valueLengths[i] < 0 ? null : Arrays.copyOfRange(bytes, start, start + valueLengths[i]);
    }

    Kind kind(int i) {
        return kinds[i];
    }

    long timestamp(int i) {
        return timestamps[i];
    }

    long number(int i) {
        return numbers[i];
    }

    void setNumber(int i, long number) {
        numbers[i] = number;
    }

    /** Notes that the entry has met its counterpart. */
    void mark(int i) {
        if (!marks[i]) {
            marks[i] = true;
            marked++;
        }
    }

    boolean isMarked(int i) {
        return marks[i];
    }

    boolean allMarked() {
        return marked == size;
    }

    /** The entry with this key, or -1. */
    int find(byte[] array, int offset, int length, long timestamp) {
        int next = cursor;
        if (next < size && is(next, array, offset, length, timestamp)) {
            cursor = next + 1;
            return next;
        }
        return search(array, offset, length, timestamp);
    }

    private boolean is(int i, byte[] array, int offset, int length, long timestamp) {
        return timestamps[i] == timestamp && lengths[i] == length
                && Arrays.equals(bytes, offsets[i], offsets[i] + length, array, offset, offset + length);
    }

    private int search(byte[] array, int offset, int length, long timestamp) {
        int from = Math.max(0, cursor - NEAR / 2);
        int to = Math.min(size, cursor + NEAR);
        if (size <= 2 * NEAR) {
            from = 0;
            to = size;
        }
        for (int i = from; i < to; i++) {
            if (is(i, array, offset, length, timestamp)) {
                cursor = i + 1;
                return i;
            }
        }
        if (to - from == size) {
            return -1;
        }
        if (!indexed) {
            index();
        }
        for (int slot = hash(array, offset, length, timestamp) & mask; buckets[slot] != 0; slot = (slot + 1) & mask) {
            int i = buckets[slot] - 1;
            if (is(i, array, offset, length, timestamp)) {
                cursor = i + 1;
                return i;
            }
        }
        return -1;
    }

    private void index() {
        int slots = Integer.highestOneBit(size) << 2;
        if (buckets.length < slots) {
            buckets = new int[slots];
        } else {
            Arrays.fill(buckets, 0, slots, 0);
        }
        mask = slots - 1;
        for (int i = 0; i < size; i++) {
            int slot = hash(bytes, offsets[i], lengths[i], timestamps[i]) & mask;
            while (buckets[slot] != 0) {
                slot = (slot + 1) & mask;
            }
            buckets[slot] = i + 1;
        }
        indexed = true;
    }

    private static int hash(byte[] array, int offset, int length, long timestamp) {
        int text = 1;
        for (int i = offset; i < offset + length; i++) {
            text = 31 * text + array[i];
        }
        long mixed = (timestamp ^ ((long) text << 32 | text & 0xFFFFFFFFL)) * 0x9E3779B97F4A7C15L;
        return (int) (mixed >>> 32) ^ (int) mixed;
    }

    /** Copies a cell's value, wherever its bytes are. */
    static void copyValue(Cell cell, byte[] target, int at) {
        if (cell instanceof ByteBufferExtendedCell) {
            ByteBufferExtendedCell buffered = (ByteBufferExtendedCell) cell;
            ByteBufferUtils.copyFromBufferToArray(target, buffered.getValueByteBuffer(),
                    buffered.getValuePosition(), at, cell.getValueLength());
        } else {
            System.arraycopy(cell.getValueArray(), cell.getValueOffset(), target, at, cell.getValueLength());
        }
    }
}
