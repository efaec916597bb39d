package lowtide.connector;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The shadow cells of a family that is too wide to be kept: a second reader beside {@link VersionReader}, which gathers
 * the family's data cells in chunks. For each chunk it scans the shadow qualifiers between the chunk's first key and
 * its last one, gives the chunk's cells their proofs, and stops at the shadow cells that have no data cell.
 *
 * <p>Guarantees: the chunks of a family together meet each of its well-formed shadow cells once. What is no well-formed
 * shadow cell is passed over: the first reader shows it.
 */
final class WideFamily implements Closeable {
    private final CellStore store;
    private final TimeRange times;
    /** The data cells of the chunk at hand, in HBase's order; the first reader adds them. */
    private final CellTable chunk;
    private final CellView view = new CellView();

    private byte[] row;
    private byte[] family;
    // Keys up to this one are dealt with; null: none yet.
    private byte[] previousQualifier;
    private long previousTimestamp;
    private boolean last;

    private CellSource source;
    private Scan extra;
    private Cell[] cells;
    private int count;
    private int at;

    // The shadow cell to show.
    private byte[] qualifier;
    private long timestamp;
    private long commit;

    /**
     * @param times what is read of the family
     * @param chunk a kept cell's number is its proof
     */
    WideFamily(CellStore store, TimeRange times, CellTable chunk) {
        this.store = store;
        this.times = times;
        this.chunk = chunk;
    }

    /** Another row or family begins. */
    void clear() {
        previousQualifier = null;
        last = false;
    }

    /** Whether no chunk of the family was ended yet. */
    boolean isFirst() {
        return previousQualifier == null;
    }

    /** Whether the chunk at hand is the family's last. */
    boolean isLast() {
        return last;
    }

    /** Begins to read the shadow cells of the chunk, whose data cells are all there; {@link #next} goes over them. */
    void open(byte[] ofRow, byte[] ofFamily, boolean lastChunk) throws IOException {
        row = ofRow;
        family = ofFamily;
        last = lastChunk;
        extra = null;
        source = store.open(scan());
        count = 0;
        at = 0;
    }

    /** Ends the chunk; another one may follow. */
    void end() {
        if (chunk.size() > 0) {
            int end = chunk.size() - 1;
            previousQualifier = chunk.qualifier(end);
            previousTimestamp = chunk.timestamp(end);
        }
        chunk.clear();
    }

    /**
     * Gives the chunk's cells their proofs up to the next shadow cell without a data cell; false: there is none any
     * more.
     */
    boolean next() throws IOException {
        while (true) {
            if (at == count) {
                if (!source.advance()) {
                    source.close();
                    source = null;
                    if (extra == null) {
                        return false;
                    }
                    source = store.open(extra);
                    extra = null;
                    continue;
                }
                cells = source.cells();
                count = source.size();
                at = 0;
            }
            view.set(cells[at++]);
            if (!Omid.endsAsShadow(view.array, view.offset, view.length)
                    || !Omid.startsAsShadow(view.array, view.offset, view.length)
                    || view.valueLength != Long.BYTES) {
                continue;
            }
            long value = view.longValue();
            if (value < Omid.start(view.timestamp)) {
                continue;
            }
            int offset = view.offset + Omid.PREFIX_LENGTH;
            int length = view.length - Omid.PREFIX_LENGTH - Omid.SUFFIX_LENGTH;
            int found = chunk.find(view.array, offset, length, view.timestamp);
            if (found >= 0) {
                chunk.setNumber(found, value);
            } else if (ofThisChunk(offset, length)) {
                qualifier = Arrays.copyOfRange(view.array, offset, offset + length);
                timestamp = view.timestamp;
                commit = value;
                return true;
            }
        }
    }

    /** The data qualifier of the shadow cell that {@link #next} stopped at. */
    byte[] qualifier() {
        return qualifier;
    }

    long timestamp() {
        return timestamp;
    }

    long commit() {
        return commit;
    }

    /**
     * The shadow cells of the keys behind the previous chunk's last one up to this chunk's last one; without an end for
     * the last chunk. Shadow cells sort by qualifier and suffix, so those of a qualifier that is the beginning of
     * the last one may lie further behind: they are read apart, by name.
     */
    private Scan scan() throws IOException {
        byte[] floor = Omid.shadowFloor(previousQualifier == null ? HConstants.EMPTY_BYTE_ARRAY : previousQualifier);
        if (last) {
            return ofRow().addFamily(family)
                    .setFilter(new ColumnRangeFilter(floor, true, Omid.afterShadows(), false));
        }
        int end = chunk.size() - 1;
        byte[] lastQualifier = chunk.qualifier(end);
        if (previousQualifier != null && Arrays.equals(previousQualifier, lastQualifier)) {
            long from = Math.max(times.getMin(), chunk.timestamp(end));
            long to = Math.min(times.getMax(), previousTimestamp);
            return ofRow().addColumn(family, Omid.shadowQualifier(lastQualifier)).setTimeRange(from, to);
        }
        byte[] ceiling = Omid.shadowQualifier(lastQualifier);
        List<byte[]> beginnings = new ArrayList<>();
        int shortest = previousQualifier == null ? 0 : commonLength(previousQualifier, lastQualifier);
        for (int length = shortest; length < lastQualifier.length; length++) {
            byte[] beginning = Arrays.copyOf(lastQualifier, length);
            byte[] shadow = Omid.shadowQualifier(beginning);
            if ((previousQualifier == null || Bytes.compareTo(beginning, previousQualifier) >= 0)
                    && Bytes.compareTo(shadow, ceiling) > 0) {
                beginnings.add(shadow);
            }
        }
        if (!beginnings.isEmpty()) {
            extra = ofRow();
            for (byte[] shadow : beginnings) {
                extra.addColumn(family, shadow);
            }
        }
        return ofRow().addFamily(family).setFilter(new ColumnRangeFilter(floor, true, ceiling, true));
    }

    private static int commonLength(byte[] left, byte[] right) {
        int mismatch = Arrays.mismatch(left, right);
        return mismatch < 0 ? left.length : mismatch;
    }

    private Scan ofRow() throws IOException {
        return new Scan().withStartRow(row, true).withStopRow(row, true).readAllVersions()
                .setTimeRange(times.getMin(), times.getMax())
                .setCacheBlocks(false);
    }

    private boolean ofThisChunk(int offset, int length) {
        if (previousQualifier != null) {
            int order = Bytes.compareTo(view.array, offset, length,
                    previousQualifier, 0, previousQualifier.length);
            if (order < 0 || order == 0 && view.timestamp >= previousTimestamp) {
                return false;
            }
        }
        if (last) {
            return true;
        }
        int end = chunk.size() - 1;
        int order = Bytes.compareTo(view.array, offset, length,
                chunk.bytes(), chunk.offset(end), chunk.length(end));
        return order < 0 || order == 0 && view.timestamp >= chunk.timestamp(end);
    }

    @Override
    public void close() throws IOException {
        if (source != null) {
            source.close();
        }
    }
}
