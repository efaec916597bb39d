package lowtide.connector;

import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;

/** Cells and their bytes, as KeyValues, that were read of each family; and whose shadow cells, where that is asked. */
final class Tally {
    private final byte[][] families;
    private final long[] cells;
    private final long[] bytes;
    /** Null where nobody asks. */
    private final ShadowStarts[] shadows;
    private int at;

    /** @param families those that can be met, at least one */
    Tally(byte[][] families) {
        this(families, 0);
    }

    /** @param mostStarts of all families' {@link ShadowStarts}, each with its part; 0: nobody asks for them */
    Tally(byte[][] families, int mostStarts) {
        this.families = families;
        this.cells = new long[families.length];
        this.bytes = new long[families.length];
        this.shadows = mostStarts == 0 ? null : new ShadowStarts[families.length];
        for (int i = 0; shadows != null && i < shadows.length; i++) {
            shadows[i] = new ShadowStarts(Math.max(1, mostStarts / shadows.length));
        }
    }

    boolean ofOneFamily() {
        return families.length == 1;
    }

    /** From here on cells are of this cell's family, one of those that can be met. */
    void turnTo(Cell cell) {
        for (int i = 0; !CellUtil.matchingFamily(cell, families[at]); i++) {
            at = i;
        }
    }

    /** Counts a cell of the family at hand. */
    void add(int size) {
        cells[at]++;
        bytes[at] += size;
    }

    /** A cell of the family at hand that Omid takes for a shadow cell, whatever its form. */
    void shadow(long timestamp) {
        if (shadows != null) {
            shadows[at].add(timestamp);
        }
    }

    int families() {
        return families.length;
    }

    byte[] family(int i) {
        return families[i];
    }

    /** What {@link ShadowStarts#bytes} gives of a family, once: it is let go of; null where nobody asked. */
    byte[] takeShadowStarts(int i) {
        if (shadows == null) {
            return null;
        }
        byte[] bytes = shadows[i].bytes();
        shadows[i] = null;
        return bytes;
    }

    long cells(int i) {
        return cells[i];
    }

    long bytes(int i) {
        return bytes[i];
    }

    long cells() {
        return Arrays.stream(cells).sum();
    }

    long bytes() {
        return Arrays.stream(bytes).sum();
    }
}
