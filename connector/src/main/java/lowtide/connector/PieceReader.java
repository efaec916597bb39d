package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.exceptions.DeserializationException;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.Filter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.filter.MultiRowRangeFilter;
import org.apache.hadoop.hbase.filter.QualifierFilter;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecificInternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads one piece into Spark's rows. The row that {@link #get} gives is filled anew by the next {@link #next}. */
final class PieceReader implements PartitionReader<InternalRow> {
    /** The columns of both views. */
    private enum Column {
        REGION, ROW, FAMILY, QUALIFIER, TIMESTAMP, START_TS, COMMIT_TS, REPLACED_TS, KIND, VALUE, PROBLEM, CELLS_READ,
        BYTES_READ, TABLE
    }

    /** Cells of a row of a sample, on the average; a few rows without end must not make it one of the table. */
    private static final long SAMPLED_CELLS_OF_A_ROW = 100;

    private final Options options;
    private final Column[] columns;
    private final InternalRow shown;
    private final UTF8String id;
    private final UTF8String table;
    private final AsOf asOf;
    private final CellStore store;
    private final RowReader reader;
    private final Tally tally;
    private long rows;
    /** The last row of the table that was looked at, and which it is; of a sample only. */
    private byte[] sampled;
    private long sampledRows;
    /** Rows that tell what was read, shown so far. */
    private int ends;
    private boolean ended;

    PieceReader(Options options, Pushdown pushdown, StructType schema, Piece piece, AsOf asOf) throws IOException {
        this.options = options;
        this.asOf = asOf;
        this.columns = new Column[schema.size()];
        boolean withValue = false;
        boolean withReplaced = pushdown.asksReplaced() || asOf != null;
        for (int i = 0; i < columns.length; i++) {
            columns[i] = Column.valueOf(schema.fields()[i].name().toUpperCase(java.util.Locale.ROOT));
            withValue |= columns[i] == Column.VALUE;
            withReplaced |= columns[i] == Column.REPLACED_TS;
        }
        this.shown = new SpecificInternalRow(schema);
        this.id = UTF8String.fromString(piece.id());
        this.table = UTF8String.fromString(piece.table());
        this.tally = new Tally(piece.families());
        // What replaced a version lies above it: an upper bound from a filter must not hide that from the reader.
        long to = withReplaced ? Long.MAX_VALUE : pushdown.to;
        RowFilter filter = asOf != null ? new RowFilter.AtReadPoint(asOf.readPoint)
                : withReplaced && pushdown.to < Long.MAX_VALUE
                ? new RowFilter.Before(pushdown.to, pushdown.filter()) : pushdown.filter();
        // A reader looks at no cell above its read point.
        to = asOf == null ? to : asOf.readPoint + 1;
        Scan scan = scan(pushdown, piece, Math.min(piece.to(), to));
        if (scan == null) {
            store = null;
            reader = RowReader.NOTHING;
            return;
        }
        store = store(piece);
        RowReader opened = null;
        try {
            opened = options.view != View.CELLS
                    ? new VersionReader(store, scan, tally, filter, withValue, withReplaced,
                            options.traces, asOf, options.pairingLimit)
                    : new PlainReader(store, scan, tally, filter, Math.max(piece.from(), pushdown.from));
        } finally {
            if (opened == null) {
                store.close();
            }
        }
        reader = opened;
    }

    private CellStore store(Piece piece) throws IOException {
        Piece.FileRegion region = piece.region();
        if (region == null) {
            return new RpcStore(options.hbase, Options.tableName(piece.table()), new Pacer(options));
        }
        try {
            return new FileStore(options.hbase, new Path(region.folder()),
                    TableDescriptorBuilder.parseFrom(region.descriptor()), RegionInfo.parseFrom(region.info()),
                    region.files(), new Pacer(options));
        } catch (DeserializationException e) {
            throw new IOException(e);
        }
    }

    /**
     * The lower bound of a scan's time range: none of a raw one, whose reader passes over what is below.
     *
     * <p>HBase (2.6.4: {@code ScanQueryMatcher.getKeyForNextColumn}, {@code KeyValueHeap.generalizedSeek}) leaves a cell below the
     * range by seeking the key that follows it. Behind a marker that deletes one version of the empty qualifier that is the key of
     * the put which it deletes; where that lies in a store file the seek never gets past it: the handler of the server spins for
     * good, and the region cannot be closed any more. Without raw no seek begins at a delete marker.
     */
    static long lowerBound(boolean raw, long from) {
        return raw ? 0 : from;
    }

    /** The scan of a piece; null if nothing in it can pass. */
    private Scan scan(Pushdown pushdown, Piece piece, long to) throws IOException {
        long from = Math.max(piece.from(), pushdown.from);
        if (pushdown.isEmpty() || from >= to || piece.families().length == 0) {
            return null;
        }
        Scan scan = new Scan()
                .withStartRow(piece.start())
                .withStopRow(piece.stop())
                .setTimeRange(lowerBound(options.raw, from), to);
        if (pushdown.allVersions()) {
            scan.readAllVersions();
        }
        scan.setRaw(options.raw);
        List<Filter> filters = new ArrayList<>();
        List<byte[]> wanted = pushdown.rowsWithin(piece.start(), piece.stop());
        if (wanted != null) {
            if (wanted.isEmpty()) {
                return null;
            }
            List<MultiRowRangeFilter.RowRange> points = new ArrayList<>();
            for (byte[] row : wanted) {
                points.add(new MultiRowRangeFilter.RowRange(row, true, row, true));
            }
            filters.add(new MultiRowRangeFilter(points));
            scan.withStartRow(wanted.get(0)).withStopRow(wanted.get(wanted.size() - 1), true);
        }
        for (byte[] family : piece.families()) {
            if (asOf != null && asOf.isUnfit(family)) {
                // HBase may keep the last version alone, and a later one's proof is all that tells of the one that was.
                scan.setColumnFamilyTimeRange(family, lowerBound(options.raw, from), Long.MAX_VALUE);
            }
            if (pushdown.qualifiers == null || options.raw) {
                scan.addFamily(family);
            } else {
                pushdown.qualifiers.forEach(qualifier -> scan.addColumn(family, qualifier));
            }
        }
        if (pushdown.qualifiers != null && options.raw) {
            // HBase takes no columns for a raw scan.
            FilterList any = new FilterList(FilterList.Operator.MUST_PASS_ONE);
            pushdown.qualifiers.forEach(qualifier ->
                    any.addFilter(new QualifierFilter(CompareOperator.EQUAL, new BinaryComparator(qualifier))));
            filters.add(any);
        }
        if (!filters.isEmpty()) {
            scan.setFilter(filters.size() == 1 ? filters.get(0) : new FilterList(filters));
        }
        return scan;
    }

    @Override
    public boolean next() throws IOException {
        while (!ended && reader.next() && withinSample()) {
            if (asOf != null && reader.kind() != Kind.PUT) {
                notShown(reader.kind());
                continue;
            }
            rows++;
            fill();
            return true;
        }
        if (!ended) {
            ended = true;
            checkAgain();
        }
        // One for each family, and one where there is none.
        if (!options.endRows || ends >= Math.max(1, tally.families())) {
            return false;
        }
        fillEnd(ends++);
        return true;
    }

    /**
     * Whether the cell that was read belongs to as many rows as are asked for: a sample looks at rows, however wide.
     */
    private boolean withinSample() {
        if (options.rowsPerRange == 0) {
            return true;
        }
        if (!Arrays.equals(sampled, reader.row())) {
            sampled = reader.row().clone();
            sampledRows++;
        }
        return sampledRows <= options.rowsPerRange && rows < options.rowsPerRange * SAMPLED_CELLS_OF_A_ROW;
    }

    /**
     * What was read of a live table holds if nothing took from it meanwhile; an HBase snapshot was looked at when it
     * stood.
     */
    private void checkAgain() throws IOException {
        if (asOf != null && !options.readsFiles) {
            asOf.checkAgain(options);
        }
    }

    /** At a read point only puts are shown; what nobody can judge fails the read. */
    private void notShown(Kind kind) {
        if (kind == Kind.UNKNOWN) {
            throw new IllegalStateException("Table " + options.table + " cannot be read with asOf: row "
                    + org.apache.hadoop.hbase.util.Bytes.toStringBinary(reader.row()) + " has a " + reader.problem()
                    + ". The view versions shows it.");
        }
    }

    @Override
    public InternalRow get() {
        return shown;
    }

    private void fill() {
        for (int i = 0; i < columns.length; i++) {
            switch (columns[i]) {
                case REGION:
                    shown.update(i, id);
                    break;
                case TABLE:
                    shown.update(i, table);
                    break;
                case ROW:
                    shown.update(i, reader.row());
                    break;
                case FAMILY:
                    shown.update(i, reader.family());
                    break;
                case QUALIFIER:
                    shown.update(i, reader.qualifier());
                    break;
                case TIMESTAMP:
                    shown.setLong(i, reader.timestamp());
                    break;
                case START_TS:
                    shown.setLong(i, Omid.start(reader.timestamp()));
                    break;
                case COMMIT_TS:
                    setLong(i, reader.commit());
                    break;
                case REPLACED_TS:
                    setLong(i, reader.replaced());
                    break;
                case KIND:
                    shown.update(i, reader.kind().label);
                    break;
                case VALUE:
                    update(i, reader.value());
                    break;
                case PROBLEM:
                    update(i, reader.problem() == null ? null : UTF8String.fromString(reader.problem()));
                    break;
                default:
                    shown.setNullAt(i);
                    break;
            }
        }
    }

    private void fillEnd(int number) {
        boolean any = number < tally.families();
        for (int i = 0; i < columns.length; i++) {
            switch (columns[i]) {
                case REGION:
                    shown.update(i, id);
                    break;
                case TABLE:
                    shown.update(i, table);
                    break;
                case KIND:
                    shown.update(i, Kind.END_OF_RANGE.label);
                    break;
                case FAMILY:
                    update(i, any ? tally.family(number) : null);
                    break;
                case CELLS_READ:
                    shown.setLong(i, any ? tally.cells(number) : 0);
                    break;
                case BYTES_READ:
                    shown.setLong(i, any ? tally.bytes(number) : 0);
                    break;
                default:
                    shown.setNullAt(i);
                    break;
            }
        }
    }

    private void setLong(int i, long value) {
        if (value == Omid.NONE) {
            shown.setNullAt(i);
        } else {
            shown.setLong(i, value);
        }
    }

    private void update(int i, Object value) {
        if (value == null) {
            shown.setNullAt(i);
        } else {
            shown.update(i, value);
        }
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return Metrics.read(cells(), bytes());
    }

    /** Cells read so far. */
    long cells() {
        return tally.cells();
    }

    /** Their bytes. */
    long bytes() {
        return tally.bytes();
    }

    @Override
    public void close() throws IOException {
        try {
            reader.close();
        } finally {
            if (store != null) {
                store.close();
            }
        }
        // Who asked for a few rows only, as limit and first do, reads to no end; the error fails his task all the same.
        if (!ended && rows > 0) {
            checkAgain();
        }
    }
}
