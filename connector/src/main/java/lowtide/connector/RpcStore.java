package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;

/** Cells of a live table, from its region servers. */
final class RpcStore implements CellStore {
    /** Bytes a server sends at a time; it bounds what of a wide row is in memory too. */
    private static final long CHUNK_BYTES = 2L << 20;

    private final Table table;
    private final Pacer pacer;
    private final List<ResultScanner> scanners = new ArrayList<>();

    RpcStore(Map<String, String> options, TableName name, Pacer pacer) throws IOException {
        this.table = Connections.get(options).getTable(name);
        this.pacer = pacer;
    }

    @Override
    public CellSource open(Scan scan) throws IOException {
        scan.setCaching(Integer.MAX_VALUE)
                .setMaxResultSize(pacer.bytes(CHUNK_BYTES))
                .setAllowPartialResults(true)
                .setCacheBlocks(false)
                .setReadType(readType(scan));
        ResultScanner scanner = table.getScanner(scan);
        scanners.add(scanner);
        return new Source(scanner);
    }

    /**
     * For a stream the server opens each file of the region anew, before it looks at the timestamps in them. Of a read that
     * leaves out what is older, which is most of an idle table, it begins with the readers that it has, and goes over to
     * streams by itself when it has read some blocks.
     */
    static Scan.ReadType readType(Scan scan) {
        return scan.getTimeRange().getMin() > 0 ? Scan.ReadType.DEFAULT : Scan.ReadType.STREAM;
    }

    @Override
    public CellSource openShown(Scan scan, AsOf asOf) throws IOException {
        return asOf.hasUnfit() ? open(scan) : new NewestFirst(this, scan, asOf.readPoint);
    }

    @Override
    public void close() throws IOException {
        try {
            pacer.end();
        } finally {
            table.close();
        }
    }

    private final class Source implements CellSource {
        private final ResultScanner scanner;
        private Cell[] cells;
        private boolean ends;

        Source(ResultScanner scanner) {
            this.scanner = scanner;
        }

        @Override
        public boolean advance() throws IOException {
            do {
                pacer.beforeRead(() -> scanners.forEach(ResultScanner::renewLease));
                Result result = scanner.next();
                if (result == null) {
                    return false;
                }
                cells = result.rawCells();
                ends = !result.mayHaveMoreCellsInRow();
                pacer.read(cells == null ? 0 : cells.length);
            } while (cells == null || cells.length == 0);
            return true;
        }

        @Override
        public Cell[] cells() {
            return cells;
        }

        @Override
        public int size() {
            return cells.length;
        }

        @Override
        public boolean endsRow() {
            return ends;
        }

        @Override
        public void close() {
            scanners.remove(scanner);
            scanner.close();
        }
    }
}
