package lowtide.connector;

import java.io.IOException;
import java.util.Locale;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;

/** Cells as HBase has them: the view {@code cells}. */
final class PlainReader implements RowReader {
    private static final String UNKNOWN_TYPE = "cell of type %d";

    private final CellSource source;
    private final RowFilter filter;
    private final Tally tally;
    private Cell[] cells;
    private int count;
    private int position;
    private Cell cell;
    private Cell rowCell;
    private byte[] row;
    private final long from;

    /** @param from cells with lower timestamps are passed over */
    PlainReader(CellStore store, Scan scan, Tally tally, RowFilter filter, long from) throws IOException {
        this.from = from;
        this.tally = tally;
        this.filter = filter;
        this.source = store.open(scan);
    }

    @Override
    public boolean next() throws IOException {
        while (true) {
            if (position == count) {
                if (!source.advance()) {
                    return false;
                }
                cells = source.cells();
                count = source.size();
                position = 0;
                if (rowCell == null || !CellUtil.matchingRows(rowCell, cells[0])) {
                    rowCell = cells[0];
                    row = null;
                }
            }
            cell = cells[position++];
            tally.turnTo(cell);
            tally.add(cell.getSerializedSize());
            if (cell.getTimestamp() < from) {
                continue;
            }
            if (kind() == Kind.UNKNOWN || filter.test(cell.getTimestamp(), Omid.NONE, Omid.NONE)) {
                return true;
            }
        }
    }

    @Override
    public Kind kind() {
        switch (cell.getType()) {
            case Put:
                return Kind.PUT;
            case Delete:
                return Kind.DELETE;
            case DeleteColumn:
                return Kind.DELETE_COLUMN;
            case DeleteFamily:
                return Kind.DELETE_FAMILY;
            case DeleteFamilyVersion:
                return Kind.DELETE_FAMILY_VERSION;
            default:
                return Kind.UNKNOWN;
        }
    }

    @Override
    public byte[] row() {
        if (row == null) {
            row = CellUtil.cloneRow(rowCell);
        }
        return row;
    }

    @Override
    public byte[] family() {
        return CellUtil.cloneFamily(cell);
    }

    @Override
    public byte[] qualifier() {
        return CellUtil.cloneQualifier(cell);
    }

    @Override
    public byte[] value() {
        return CellUtil.cloneValue(cell);
    }

    @Override
    public long timestamp() {
        return cell.getTimestamp();
    }

    @Override
    public String problem() {
        return kind() == Kind.UNKNOWN ? String.format(Locale.ROOT, UNKNOWN_TYPE, cell.getTypeByte()) : null;
    }

    @Override
    public void close() throws IOException {
        source.close();
    }
}
