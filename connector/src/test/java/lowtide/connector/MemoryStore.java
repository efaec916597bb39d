package lowtide.connector;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NavigableSet;
import java.util.Random;
import java.util.TreeSet;
import org.apache.hadoop.hbase.ByteBufferKeyValue;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Cells in memory, scanned as HBase scans them: the order is {@link CellComparator}'s, and rows, families, columns,
 * time range, one version or all, and {@link ColumnRangeFilter} are honoured. Batches have random sizes and cells lie on arrays or buffers.
 */
final class MemoryStore implements CellStore {
    final TreeSet<Cell> cells = new TreeSet<>(CellComparator.getInstance());
    private final Random random;
    private final int batch;

    MemoryStore(Random random, int batch) {
        this.random = random;
        this.batch = batch;
    }

    MemoryStore put(byte[] row, byte[] family, byte[] qualifier, long timestamp, byte[] value) {
        KeyValue array = new KeyValue(row, family, qualifier, timestamp, value);
        if (random.nextBoolean()) {
            cells.add(array);
            return this;
        }
        ByteBuffer buffer = ByteBuffer.allocateDirect(array.getLength() + 5);
        buffer.position(5);
        buffer.put(array.getBuffer(), array.getOffset(), array.getLength());
        cells.add(new ByteBufferKeyValue(buffer, 5, array.getLength()));
        return this;
    }

    MemoryStore data(String row, String qualifier, long timestamp, String value) {
        return put(Bytes.toBytes(row), Bytes.toBytes("f"), Bytes.toBytes(qualifier), timestamp, Bytes.toBytes(value));
    }

    MemoryStore shadow(String row, String qualifier, long timestamp, long commit) {
        return put(Bytes.toBytes(row), Bytes.toBytes("f"), Omid.shadowQualifier(Bytes.toBytes(qualifier)), timestamp,
                Bytes.toBytes(commit));
    }

    @Override
    public CellSource open(Scan scan) {
        List<Cell> found = new ArrayList<>();
        for (Cell cell : cells) {
            boolean older = !found.isEmpty() && CellUtil.matchingRowColumn(found.get(found.size() - 1), cell);
            if (wanted(scan, cell) && !(older && scan.getMaxVersions() == 1)) {
                found.add(cell);
            }
        }
        return new CellSource() {
            private int at;
            private Cell[] now = {};

            @Override
            public boolean advance() {
                if (at == found.size()) {
                    return false;
                }
                int end = at + 1;
                int most = at + 1 + random.nextInt(batch);
                while (end < Math.min(most, found.size()) && CellUtil.matchingRows(found.get(at), found.get(end))) {
                    end++;
                }
                now = found.subList(at, end).toArray(new Cell[0]);
                at = end;
                return true;
            }

            @Override
            public Cell[] cells() {
                return now;
            }

            @Override
            public int size() {
                return now.length;
            }

            @Override
            public boolean endsRow() {
                return at == found.size() || !CellUtil.matchingRows(now[0], found.get(at));
            }

            @Override
            public void close() {
            }
        };
    }

    private static boolean wanted(Scan scan, Cell cell) {
        byte[] row = CellUtil.cloneRow(cell);
        byte[] family = CellUtil.cloneFamily(cell);
        byte[] qualifier = CellUtil.cloneQualifier(cell);
        int fromStart = Bytes.compareTo(row, scan.getStartRow());
        int fromStop = scan.getStopRow().length == 0 ? -1 : Bytes.compareTo(row, scan.getStopRow());
        if (fromStart < 0 || fromStop > 0 || fromStop == 0 && !scan.includeStopRow()
                || !scan.getTimeRange().withinTimeRange(cell.getTimestamp())) {
            return false;
        }
        if (!scan.getFamilyMap().isEmpty()) {
            if (!scan.getFamilyMap().containsKey(family)) {
                return false;
            }
            NavigableSet<byte[]> columns = scan.getFamilyMap().get(family);
            if (columns != null && !columns.contains(qualifier)) {
                return false;
            }
        }
        if (scan.getFilter() instanceof ColumnRangeFilter range) {
            int low = Bytes.compareTo(qualifier, range.getMinColumn());
            int high = range.getMaxColumn() == null ? -1 : Bytes.compareTo(qualifier, range.getMaxColumn());
            return (low > 0 || low == 0 && range.getMinColumnInclusive())
                    && (high < 0 || high == 0 && range.getMaxColumnInclusive());
        }
        if (scan.getFilter() != null) {
            throw new UnsupportedOperationException(scan.getFilter().toString());
        }
        return true;
    }

    @Override
    public void close() {
    }

    @Override
    public String toString() {
        return Arrays.toString(cells.toArray());
    }
}
