package lowtide.connector;

import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;

/** Cells and their bytes, as KeyValues, that were read of each family. */
final class Tally {
    private final byte[][] families;
    private final long[] cells;
    private final long[] bytes;
    private int at;

    /** @param families those that can be met, at least one */
    Tally(byte[][] families) {
        this.families = families;
        this.cells = new long[families.length];
        this.bytes = new long[families.length];
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

    int families() {
        return families.length;
    }

    byte[] family(int i) {
        return families[i];
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
