package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Pairs the data cells of a key range with their shadow cells: the view {@code versions}.
 *
 * <p>Guarantees: every cell of the source is accounted for in exactly one way: as a row that {@link #next} stops at,
 * as a row that the filter turned down, or as the shadow cell of such a row. Nothing is allocated for a cell that is
 * not shown. Memory is bounded whatever the width of a row.
 *
 * <p>How: within a row and family HBase shows (1) the family tombstones and the few columns whose qualifier sorts
 * before the shadow prefix, (2) the shadow cells, (3) all other columns. (1) and (2) are kept in two tables; a cell of
 * (3) finds its shadow cell in the table. When the tables reach the limit the family is <i>wide</i>: shadow cells
 * are passed over, data cells are gathered in chunks, and for each chunk a second scanner goes over the shadow
 * qualifiers between the chunk's first and last key.
 *
 * <p>Between the two scanners of a wide family over a live table time passes. What is written in between can make a
 * data cell look unproven, or a shadow cell look dangling, for a moment: the jobs guard every action anyway.
 */
final class VersionReader implements RowReader {
    /** Kept bytes of one row and family after which it is wide. */
    private static final int BYTE_LIMIT = 32 << 20;
    /** Shadow cells and early data cells of one row and family after which it is wide. */
    static final int DEFAULT_LIMIT = 1 << 16;

    static final String BAD_LENGTH = "shadow cell of %d bytes";
    static final String BELOW_OWN = "shadow cell below its own timestamp";
    static final String NO_PREFIX = "shadow qualifier without prefix";

    private final CellStore store;
    private final CellSource source;
    private final Scan scan;
    private final RowFilter filter;
    private final boolean withValue;
    private final boolean withReplaced;
    private final boolean traces;
    /**
     * Commits beside the shadow cells, and what decides under the empty qualifier, where a snapshot is read; else null.
     */
    private final AsOf asOf;
    private final Unnamed unnamed;
    private final Tally tally;
    private final int limit;
    private final Hiding hiding;

    // The batch, and where we are in it.
    private Cell[] cells;
    private int count;
    private int position;
    private boolean ended;

    // The row and the family.
    private Cell rowCell;
    private byte[] row;
    private byte[] family = {};
    private boolean familyOpen;
    private boolean shadowsDone;
    private final CellTable shadows = new CellTable();
    private final CellTable early = new CellTable();

    // What is left to show before reading on.
    private enum Drain { NOTHING, EARLY, DANGLING, CHUNK_SHADOWS, CHUNK }

    private Drain drain = Drain.NOTHING;
    private int drainAt;

    // A wide family: `early` holds the chunk; keys up to `previous` are dealt with.
    private boolean wide;
    private byte[] previousQualifier;
    private long previousTimestamp;
    private boolean lastChunk;
    private CellSource chunkSource;
    private Scan chunkExtra;
    private Cell[] chunkCells;
    private int chunkCount;
    private int chunkAt;

    private final CellView view = new CellView();

    // The row to show.
    private Kind kind;
    private byte[] shownQualifier;
    private Cell shownCell;
    private CellTable shownTable;
    private int shownIndex;
    private long timestamp;
    private long commit;
    private long replaced;
    private String problem;

    /**
     * @param scan the scan of the range: all versions, not raw
     * @param tally of the families it can meet; what a wide family's second scanner reads again is not counted
     * @param traces whether tombstones, cells without qualifier and shadow cells without data pass the filter anyway
     * @param asOf the snapshot that is read, with commit timestamps of cells without shadow cell; else null
     * @param limit cells kept for one row and family before it is taken for wide
     */
    VersionReader(CellStore store, Scan scan, Tally tally, RowFilter filter, boolean withValue, boolean withReplaced,
            boolean traces, AsOf asOf, int limit) throws IOException {
        this.store = store;
        this.scan = scan;
        this.filter = filter;
        this.withValue = withValue;
        this.withReplaced = withReplaced;
        this.traces = traces;
        this.asOf = asOf;
        this.unnamed = asOf == null ? null : new Unnamed(asOf.snapshot);
        this.tally = tally;
        this.limit = limit;
        this.hiding = new Hiding(unnamed);
        this.source = store.open(scan);
    }

    /** Moves to the next row that passes the filter; false at the end of the range. */
    @Override
    public boolean next() throws IOException {
        problem = null;
        while (true) {
            if (drain != Drain.NOTHING && drain()) {
                return true;
            }
            if (read()) {
                return true;
            }
            if (ended && drain == Drain.NOTHING) {
                return false;
            }
        }
    }

    /** Reads on until a row is to be shown (true), or something is to be drained first or the end is reached. */
    private boolean read() throws IOException {
        while (true) {
            if (position == count && !nextBatch()) {
                return false;
            }
            Cell cell = cells[position];
            if (position == 0 && (rowCell == null || !CellUtil.matchingRows(rowCell, cell))) {
                if (!closeFamily()) {
                    return false;
                }
                rowCell = cell;
                row = null;
            }
            if (!familyOpen || !tally.ofOneFamily() && !CellUtil.matchingFamily(cell, family)) {
                if (!closeFamily()) {
                    return false;
                }
                openFamily(cell);
            }
            view.set(cell);
            if (Omid.endsAsShadow(view.array, view.offset, view.length)) {
                seen();
                if (shadow(cell)) {
                    return true;
                }
            } else if (wide) {
                if (!room(view.valueLength)) {
                    startChunk();
                    return false;
                }
                seen();
                early.add(view.array, view.offset, view.length, cell, withValue);
            } else if (Omid.sortsAfterShadows(view.array, view.offset, view.length)) {
                if (!shadowsDone) {
                    shadowsDone = true;
                    if (early.size() > 0) {
                        startEarly();
                        return false;
                    }
                }
                seen();
                if (data(cell)) {
                    return true;
                }
            } else {
                if (!room(view.valueLength)) {
                    wide = true;
                    shadows.clear();
                    continue;
                }
                seen();
                early.add(view.array, view.offset, view.length, cell, withValue);
            }
        }
    }

    private boolean nextBatch() throws IOException {
        if (!ended && source.advance()) {
            cells = source.cells();
            count = source.size();
            position = 0;
            return true;
        }
        ended = true;
        closeFamily();
        return false;
    }

    private void seen() {
        position++;
        tally.add(view.bytes);
    }

    private boolean room(int valueLength) {
        return early.size() == 0 && shadows.size() == 0 || early.size() + shadows.size() < limit
                && (long) early.bytesUsed() + shadows.bytesUsed() + view.length
                        + (withValue ? valueLength : 0) <= BYTE_LIMIT;
    }

    private void openFamily(Cell cell) {
        if (family.length == 0 || !tally.ofOneFamily() && !CellUtil.matchingFamily(cell, family)) {
            family = CellUtil.cloneFamily(cell);
            tally.turnTo(cell);
        }
        familyOpen = true;
        shadowsDone = false;
        wide = false;
        previousQualifier = null;
        lastChunk = false;
        shadows.clear();
        early.clear();
        hiding.clear();
        if (unnamed != null) {
            unnamed.clear();
        }
    }

    /** Ends the family at hand; false if there is something to show first. */
    private boolean closeFamily() throws IOException {
        if (!familyOpen) {
            return true;
        }
        if (wide) {
            if (!lastChunk) {
                lastChunk = true;
                startChunk();
                return false;
            }
        } else if (!shadowsDone && early.size() > 0) {
            shadowsDone = true;
            startEarly();
            return false;
        } else if (!shadows.allMarked()) {
            startDrain(Drain.DANGLING);
            return false;
        }
        familyOpen = false;
        return true;
    }

    /** A cell whose qualifier ends as a shadow cell's. True if it is to be shown. */
    private boolean shadow(Cell cell) {
        if (!Omid.startsAsShadow(view.array, view.offset, view.length)) {
            return showUnknown(cell, NO_PREFIX);
        }
        if (view.valueLength != Long.BYTES) {
            return showUnknown(cell, String.format(BAD_LENGTH, view.valueLength));
        }
        long value = view.longValue();
        if (value < Omid.start(view.timestamp)) {
            return showUnknown(cell, BELOW_OWN);
        }
        if (wide) {
            return false;
        }
        if (!room(0)) {
            wide = true;
            shadows.clear();
            return false;
        }
        shadows.add(view.array, view.offset + Omid.PREFIX_LENGTH,
                view.length - Omid.PREFIX_LENGTH - Omid.SUFFIX_LENGTH, view.timestamp, value);
        return false;
    }

    /** A data cell behind the shadow cells of its family. True if it is to be shown. */
    private boolean data(Cell cell) throws IOException {
        long at = view.timestamp;
        long proof = Omid.NONE;
        int found = shadows.find(view.array, view.offset, view.length, at);
        if (found >= 0) {
            shadows.mark(found);
            proof = shadows.number(found);
        } else if (asOf != null) {
            proof = asOf.proof(at);
        }
        long hidden = withReplaced
                ? hiding.of(view.array, view.offset, view.length, at, proof, false) : Omid.NONE;
        if (!filter.test(at, proof, hidden) && !(traces && Omid.kind(cell, view.length) != Kind.PUT)) {
            return false;
        }
        show(null, cell, null, 0, at, proof, hidden);
        return true;
    }

    // Showing what was kept.

    private void startDrain(Drain what) {
        drain = what;
        drainAt = 0;
    }

    private void startEarly() throws IOException {
        for (int i = 0; i < early.size(); i++) {
            int found = shadows.find(early.bytes(), early.offset(i), early.length(i), early.timestamp(i));
            if (found >= 0) {
                shadows.mark(found);
                early.setNumber(i, shadows.number(found));
            }
        }
        settle();
        startDrain(Drain.EARLY);
    }

    /**
     * Of a snapshot, what shows of a family hangs on all its cells without qualifier: the first that are kept of it.
     */
    private void settle() throws IOException {
        if (unnamed == null || previousQualifier != null) {
            return;
        }
        for (int i = 0; i < early.size() && early.length(i) == 0; i++) {
            unnamed.add(early.timestamp(i), proof(i), early.kind(i) == Kind.FAMILY_TOMBSTONE);
        }
        unnamed.settle();
    }

    /** The proof of a kept data cell. */
    private long proof(int i) throws IOException {
        long proof = early.number(i);
        return proof == Omid.NONE && asOf != null ? asOf.proof(early.timestamp(i)) : proof;
    }

    /** Shows the next kept row that passes the filter (true), or ends the drain. */
    private boolean drain() throws IOException {
        switch (drain) {
            case EARLY:
                for (; drainAt < early.size(); drainAt++) {
                    if (kept(drainAt)) {
                        drainAt++;
                        return true;
                    }
                }
                early.clear();
                break;
            case DANGLING:
                for (; drainAt < shadows.size(); drainAt++) {
                    if (!shadows.isMarked(drainAt) && (traces
                            || filter.test(shadows.timestamp(drainAt), shadows.number(drainAt), Omid.NONE))) {
                        show(Kind.SHADOW, null, shadows, drainAt, shadows.timestamp(drainAt),
                                shadows.number(drainAt), Omid.NONE);
                        drainAt++;
                        return true;
                    }
                }
                shadows.clear();
                break;
            case CHUNK_SHADOWS:
                if (chunkShadow()) {
                    return true;
                }
                settle();
                startDrain(Drain.CHUNK);
                return drain();
            case CHUNK:
                for (; drainAt < early.size(); drainAt++) {
                    if (kept(drainAt)) {
                        drainAt++;
                        return true;
                    }
                }
                endChunk();
                break;
            default:
                throw new IllegalStateException(drain.name());
        }
        drain = Drain.NOTHING;
        return false;
    }

    /** A kept data cell whose number is its proof by now. True if it is to be shown. */
    private boolean kept(int i) throws IOException {
        long at = early.timestamp(i);
        long proof = proof(i);
        long hidden = withReplaced ? hiding.of(early.bytes(), early.offset(i), early.length(i), at, proof,
                early.kind(i) == Kind.FAMILY_TOMBSTONE) : Omid.NONE;
        boolean trace = traces && (early.kind(i) != Kind.PUT || early.length(i) == 0);
        if (!filter.test(at, proof, hidden) && !trace) {
            return false;
        }
        show(early.kind(i), null, early, i, at, proof, hidden);
        return true;
    }

    // A wide family.

    private void startChunk() throws IOException {
        chunkExtra = null;
        chunkSource = store.open(chunkScan());
        chunkCount = 0;
        chunkAt = 0;
        drain = Drain.CHUNK_SHADOWS;
    }

    private void endChunk() {
        if (early.size() > 0) {
            int last = early.size() - 1;
            previousQualifier = early.qualifier(last);
            previousTimestamp = early.timestamp(last);
        }
        early.clear();
    }

    /**
     * The shadow cells of the keys behind the previous chunk's last one up to this chunk's last one; without an end for
     * the last chunk. Shadow cells sort by qualifier and suffix, so those of a qualifier that is the beginning of
     * the last one may lie further behind: they are read apart, by name.
     */
    private Scan chunkScan() throws IOException {
        byte[] floor = Omid.shadowFloor(previousQualifier == null ? Bytes.toBytes("") : previousQualifier);
        if (lastChunk) {
            return rowScan().addFamily(family)
                    .setFilter(new ColumnRangeFilter(floor, true, Omid.afterShadows(), false));
        }
        int last = early.size() - 1;
        byte[] lastQualifier = early.qualifier(last);
        if (previousQualifier != null && Arrays.equals(previousQualifier, lastQualifier)) {
            long from = Math.max(scan.getTimeRange().getMin(), early.timestamp(last));
            long to = Math.min(scan.getTimeRange().getMax(), previousTimestamp);
            return rowScan().addColumn(family, Omid.shadowQualifier(lastQualifier)).setTimeRange(from, to);
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
            chunkExtra = rowScan();
            for (byte[] shadow : beginnings) {
                chunkExtra.addColumn(family, shadow);
            }
        }
        return rowScan().addFamily(family).setFilter(new ColumnRangeFilter(floor, true, ceiling, true));
    }

    private static int commonLength(byte[] left, byte[] right) {
        int mismatch = Arrays.mismatch(left, right);
        return mismatch < 0 ? left.length : mismatch;
    }

    private Scan rowScan() throws IOException {
        return new Scan().withStartRow(row(), true).withStopRow(row(), true).readAllVersions()
                .setTimeRange(scan.getTimeRange().getMin(), scan.getTimeRange().getMax())
                .setCacheBlocks(false);
    }

    /** Gives the chunk's cells their proofs; stops (true) at a shadow cell without a data cell. */
    private boolean chunkShadow() throws IOException {
        while (true) {
            if (chunkAt == chunkCount) {
                if (!chunkSource.advance()) {
                    chunkSource.close();
                    chunkSource = null;
                    if (chunkExtra == null) {
                        return false;
                    }
                    chunkSource = store.open(chunkExtra);
                    chunkExtra = null;
                    continue;
                }
                chunkCells = chunkSource.cells();
                chunkCount = chunkSource.size();
                chunkAt = 0;
            }
            Cell cell = chunkCells[chunkAt++];
            view.set(cell);
            if (!Omid.endsAsShadow(view.array, view.offset, view.length)
                    || !Omid.startsAsShadow(view.array, view.offset, view.length)
                    || view.valueLength != Long.BYTES) {
                continue;
            }
            long at = view.timestamp;
            long value = view.longValue();
            if (value < Omid.start(at)) {
                continue;
            }
            int offset = view.offset + Omid.PREFIX_LENGTH;
            int length = view.length - Omid.PREFIX_LENGTH - Omid.SUFFIX_LENGTH;
            int found = early.find(view.array, offset, length, at);
            if (found >= 0) {
                early.setNumber(found, value);
            } else if (ofThisChunk(offset, length, at) && (traces || filter.test(at, value, Omid.NONE))) {
                show(Kind.SHADOW, null, null, 0, at, value, Omid.NONE);
                shownQualifier = Arrays.copyOfRange(view.array, offset, offset + length);
                return true;
            }
        }
    }

    private boolean ofThisChunk(int offset, int length, long at) {
        if (previousQualifier != null) {
            int order = Bytes.compareTo(view.array, offset, length,
                    previousQualifier, 0, previousQualifier.length);
            if (order < 0 || order == 0 && at >= previousTimestamp) {
                return false;
            }
        }
        if (lastChunk) {
            return true;
        }
        int last = early.size() - 1;
        int order = Bytes.compareTo(view.array, offset, length,
                early.bytes(), early.offset(last), early.length(last));
        return order < 0 || order == 0 && at >= early.timestamp(last);
    }

    // The row to show.

    private boolean showUnknown(Cell cell, String what) {
        show(Kind.UNKNOWN, cell, null, 0, cell.getTimestamp(), Omid.NONE, Omid.NONE);
        problem = what;
        return true;
    }

    private void show(Kind shownKind, Cell cell, CellTable table, int index, long at, long proof, long hidden) {
        kind = shownKind;
        shownCell = cell;
        shownTable = table;
        shownIndex = index;
        shownQualifier = null;
        timestamp = at;
        commit = proof;
        replaced = hidden;
    }

    @Override
    public Kind kind() {
        if (kind == null) {
            kind = Omid.kind(shownCell, shownCell.getQualifierLength());
        }
        return kind;
    }

    /** The row key; the same array for all rows of one HBase row. */
    @Override
    public byte[] row() {
        if (row == null) {
            row = CellUtil.cloneRow(rowCell);
        }
        return row;
    }

    /** The family; the same array as long as it does not change. */
    @Override
    public byte[] family() {
        return family;
    }

    /** The data cell's qualifier; of an unknown cell its own. */
    @Override
    public byte[] qualifier() {
        if (shownQualifier == null) {
            shownQualifier = shownCell != null ? CellUtil.cloneQualifier(shownCell) : shownTable.qualifier(shownIndex);
        }
        return shownQualifier;
    }

    /** The value of a data cell or an unknown cell; null for a shadow cell, and where values were not asked for. */
    @Override
    public byte[] value() {
        if (!withValue || kind == Kind.SHADOW) {
            return null;
        }
        return shownCell != null ? CellUtil.cloneValue(shownCell) : shownTable.value(shownIndex);
    }

    @Override
    public long timestamp() {
        return timestamp;
    }

    /** The commit timestamp, or {@link Omid#NONE}. */
    @Override
    public long commit() {
        return commit;
    }

    /** The commit timestamp that hides the version, or {@link Omid#NONE}. */
    @Override
    public long replaced() {
        return replaced;
    }

    @Override
    public String problem() {
        return problem;
    }

    @Override
    public void close() throws IOException {
        if (chunkSource != null) {
            chunkSource.close();
        }
        source.close();
    }
}
