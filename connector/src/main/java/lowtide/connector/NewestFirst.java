package lowtide.connector;

import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;

/**
 * What may show of a live table at a read point, newest first: of each row the newest version of every column up to the
 * read point, and all versions only where those do not settle what shows. Of a table with much history a server then
 * sends little of it; it goes past all of it either way.
 *
 * <p>Guarantees: a row's cells are all its cells of the scan; or they are of every column the newest data cell and the
 * shadow cell at its timestamp, which says that it committed before the read point, and nothing else is there: whatever
 * is older is hidden by it. A row with anything that is told otherwise (no proof beside it, a cell without qualifier,
 * an unknown form) comes with all its cells, as HBase has them together at one moment.
 *
 * <p>A row that is read again costs some hundred times what it does in passing. So where that happens more than rarely,
 * all versions are read of the rest.
 */
final class NewestFirst implements CellSource {
    /** One row of so many may be read again, and a few beside them. */
    private static final int ROWS = 500;
    private static final int FEW = 10;
    /** Of a family with more columns all is read: which shadow cell is whose would be searched for too long. */
    private static final int COLUMNS = 1_000;

    private final CellStore store;
    private final Scan all;
    private final long readPoint;
    private final boolean oneFamily;
    /** The newest versions; null: of the rest all versions are read. */
    private CellSource newest;
    /** All versions of a row, or of the rest; null: there is nothing of the kind at hand. */
    private CellSource whole;
    private CellSource now;
    /** A cell of the row that is, or was, read again: what more the newest versions have of it is passed over. */
    private Cell again;
    private long rows;
    private long readAgain;

    private final CellView shadow = new CellView();
    private final CellView data = new CellView();

    /**
     * @param all all versions up to the read point, not raw
     * @param readPoint what committed before it shows
     */
    NewestFirst(CellStore store, Scan all, long readPoint) throws IOException {
        this.store = store;
        this.all = all;
        this.readPoint = readPoint;
        this.oneFamily = all.numFamilies() == 1;
        this.newest = store.open(new Scan(all).readVersions(1));
    }

    @Override
    public boolean advance() throws IOException {
        while (true) {
            if (whole != null) {
                if (whole.advance()) {
                    now = whole;
                    return true;
                }
                whole.close();
                whole = null;
            }
            if (newest == null || !newest.advance()) {
                return false;
            }
            Cell first = newest.cells()[0];
            if (again != null && CellUtil.matchingRows(again, first)) {
                continue;
            }
            rows++;
            // It begins its row too: of one that comes in parts the first has it read again.
            if (newest.endsRow() && settles(newest.cells(), newest.size())) {
                now = newest;
                return true;
            }
            again = first;
            readAgain();
        }
    }

    private void readAgain() throws IOException {
        byte[] row = CellUtil.cloneRow(again);
        Scan scan = new Scan(all).withStartRow(row);
        if (++readAgain > FEW + rows / ROWS) {
            newest.close();
            newest = null;
        } else {
            scan.withStopRow(row, true);
        }
        whole = store.open(scan);
    }

    /** Whether the row has nothing but data cells, each with the shadow cell that says when it committed: in time. */
    private boolean settles(Cell[] cells, int count) {
        int next = 0;
        while (next < count) {
            int first = next;
            while (next < count && isShadow(cells[next]) && sameFamily(cells[next], cells[first])) {
                next++;
            }
            int columns = next - first;
            if (columns == 0 || columns > COLUMNS || next + columns > count) {
                return false;
            }
            int likely = 0;
            for (int i = 0; i < columns; i++, next++) {
                // The shadow cells of qualifiers that begin alike are in another order than these.
                int found = sameFamily(cells[next], cells[first])
                        ? proof(cells, first, columns, likely, cells[next]) : -1;
                if (found < 0) {
                    return false;
                }
                likely = found + 1;
            }
        }
        return true;
    }

    private boolean sameFamily(Cell one, Cell other) {
        return oneFamily || CellUtil.matchingFamily(one, other);
    }

    private boolean isShadow(Cell cell) {
        shadow.set(cell);
        return Omid.endsAsShadow(shadow.array, shadow.offset, shadow.length)
                && Omid.startsAsShadow(shadow.array, shadow.offset, shadow.length);
    }

    /** Which of the shadow cells from {@code first} on proves the data cell in time; -1: none. */
    private int proof(Cell[] cells, int first, int columns, int likely, Cell cell) {
        data.set(cell);
        if (Omid.endsAsShadow(data.array, data.offset, data.length)) {
            return -1;
        }
        for (int i = 0; i < columns; i++) {
            int at = (likely + i) % columns;
            shadow.set(cells[first + at]);
            int from = shadow.offset + Omid.PREFIX_LENGTH;
            int to = shadow.offset + shadow.length - Omid.SUFFIX_LENGTH;
            if (Arrays.equals(shadow.array, from, to, data.array, data.offset, data.offset + data.length)) {
                return shadow.timestamp == data.timestamp && shadow.valueLength == Long.BYTES
                        && shadow.longValue() >= Omid.start(data.timestamp) && shadow.longValue() < readPoint ? at : -1;
            }
        }
        return -1;
    }

    @Override
    public Cell[] cells() {
        return now.cells();
    }

    @Override
    public int size() {
        return now.size();
    }

    @Override
    public boolean endsRow() {
        return now.endsRow();
    }

    @Override
    public void close() throws IOException {
        try {
            if (whole != null) {
                whole.close();
            }
        } finally {
            if (newest != null) {
                newest.close();
            }
        }
    }
}
