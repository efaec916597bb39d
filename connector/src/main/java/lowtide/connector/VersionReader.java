package lowtide.connector;

import java.io.IOException;
import java.util.Locale;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
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

    static final String BAD_LENGTH = "shadow cell of %d bytes";
    static final String BELOW_OWN = "shadow cell below its own timestamp";
    static final String NO_PREFIX = "shadow qualifier without prefix";

    private final CellSource source;
    private final RowFilter filter;
    private final boolean withValue;
    private final boolean withReplaced;
    private final boolean traces;
    /**
     * Commits beside the shadow cells, and what decides under the empty qualifier, where a read point is given; else
     * null.
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
    /** Whether no transaction's cell may be met in it. */
    private boolean unfit;
    private boolean familyOpen;
    private boolean shadowsDone;
    private final CellTable shadows = new CellTable();
    private final CellTable early = new CellTable();

    // What is left to show before reading on.
    private enum Drain { NOTHING, EARLY, DANGLING, CHUNK_SHADOWS, CHUNK }

    private Drain drain = Drain.NOTHING;
    private int drainAt;

    // A wide family: `early` holds the chunk.
    private boolean wide;
    private final WideFamily chunks;

    private final CellView view = new CellView();

    private final ShownRow shown;

    /**
     * @param scan the scan of the range: all versions, not raw
     * @param tally of the families it can meet; what a wide family's second scanner reads again is not counted
     * @param traces whether tombstones, cells without qualifier and shadow cells without data pass the filter anyway
     * @param asOf the read point, with commit timestamps of cells without shadow cell; else null
     * @param limit cells kept for one row and family before it is taken for wide
     */
    VersionReader(CellStore store, Scan scan, Tally tally, RowFilter filter, boolean withValue, boolean withReplaced,
            boolean traces, AsOf asOf, int limit) throws IOException {
        this.filter = filter;
        this.withValue = withValue;
        this.withReplaced = withReplaced;
        this.traces = traces;
        this.asOf = asOf;
        this.unnamed = asOf == null ? null : new Unnamed(asOf.readPoint);
        this.tally = tally;
        this.limit = limit;
        this.hiding = new Hiding(unnamed);
        this.shown = new ShownRow(withValue);
        this.chunks = new WideFamily(store, scan.getTimeRange(), early);
        this.source = asOf == null ? store.open(scan) : store.openShown(scan, asOf);
    }

    /** Moves to the next row that passes the filter; false at the end of the range. */
    @Override
    public boolean next() throws IOException {
        while (true) {
            if (drain != Drain.NOTHING && drain() || read()) {
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
                countCell();
                if (shadow(cell)) {
                    return true;
                }
            } else if (wide) {
                if (!room(view.valueLength)) {
                    startChunk(false);
                    return false;
                }
                countCell();
                early.add(view.array, view.offset, view.length, cell, withValue);
            } else if (Omid.sortsAfterShadows(view.array, view.offset, view.length)) {
                if (!shadowsDone) {
                    shadowsDone = true;
                    if (early.size() > 0) {
                        startEarly();
                        return false;
                    }
                }
                countCell();
                if (data(cell)) {
                    return true;
                }
            } else {
                if (!room(view.valueLength)) {
                    wide = true;
                    shadows.clear();
                    continue;
                }
                countCell();
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

    private void countCell() {
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
            unfit = asOf != null && asOf.isUnfit(family);
            tally.turnTo(cell);
        }
        familyOpen = true;
        shadowsDone = false;
        wide = false;
        chunks.clear();
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
            if (!chunks.isLast()) {
                startChunk(true);
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
            return shown.unknown(cell, NO_PREFIX);
        }
        if (view.valueLength != Long.BYTES) {
            return shown.unknown(cell, String.format(Locale.ROOT, BAD_LENGTH, view.valueLength));
        }
        long value = view.longValue();
        if (value < Omid.start(view.timestamp)) {
            return shown.unknown(cell, BELOW_OWN);
        }
        if (unfit) {
            asOf.met(Bytes.toString(family));
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
            proof = readersProof(at);
        }
        long hidden = withReplaced
                ? hiding.of(view.array, view.offset, view.length, at, proof, false) : Omid.NONE;
        if (!filter.test(at, proof, hidden) && !(traces && Omid.kind(cell, view.length) != Kind.PUT)) {
            return false;
        }
        return shown.data(cell, at, proof, hidden);
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
     * At a read point, what shows of a family hangs on all its cells without qualifier: the first that are kept of it.
     */
    private void settle() throws IOException {
        if (unnamed == null || !chunks.isFirst()) {
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
        return proof == Omid.NONE && asOf != null ? readersProof(early.timestamp(i)) : proof;
    }

    /** What proves a cell without shadow cell to a reader. */
    private long readersProof(long timestamp) throws IOException {
        long proof = asOf.proof(timestamp);
        if (unfit && proof != Omid.NONE) {
            asOf.met(Bytes.toString(family));
        }
        return proof;
    }

    /** Shows the next kept row that passes the filter (true), or ends the drain. */
    private boolean drain() throws IOException {
        switch (drain) {
            case EARLY:
                while (drainAt < early.size()) {
                    if (kept(drainAt++)) {
                        return true;
                    }
                }
                early.clear();
                break;
            case DANGLING:
                while (drainAt < shadows.size()) {
                    if (dangling(drainAt++)) {
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
                while (drainAt < early.size()) {
                    if (kept(drainAt++)) {
                        return true;
                    }
                }
                chunks.end();
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
        return shown.kept(early, i, proof, hidden);
    }

    /** A kept shadow cell. True if it has no data cell and is to be shown. */
    private boolean dangling(int i) {
        long at = shadows.timestamp(i);
        long value = shadows.number(i);
        if (shadows.isMarked(i) || !traces && !filter.test(at, value, Omid.NONE)) {
            return false;
        }
        return shown.shadow(shadows.qualifier(i), at, value);
    }

    // A wide family.

    private void startChunk(boolean last) throws IOException {
        chunks.open(row(), family, last);
        drain = Drain.CHUNK_SHADOWS;
    }

    /** Gives the chunk's cells their proofs; stops (true) at a shadow cell without a data cell that is to be shown. */
    private boolean chunkShadow() throws IOException {
        while (chunks.next()) {
            if (traces || filter.test(chunks.timestamp(), chunks.commit(), Omid.NONE)) {
                return shown.shadow(chunks.qualifier(), chunks.timestamp(), chunks.commit());
            }
        }
        return false;
    }

    // The row that is shown.

    @Override
    public Kind kind() {
        return shown.kind();
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

    @Override
    public byte[] qualifier() {
        return shown.qualifier();
    }

    @Override
    public byte[] value() {
        return shown.value();
    }

    @Override
    public long timestamp() {
        return shown.timestamp();
    }

    @Override
    public long commit() {
        return shown.commit();
    }

    @Override
    public long replaced() {
        return shown.replaced();
    }

    @Override
    public String problem() {
        return shown.problem();
    }

    @Override
    public void close() throws IOException {
        chunks.close();
        source.close();
    }
}
