package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import java.util.Set;
import java.util.TreeMap;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeepDeletedCells;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A read point, as the oracle counts time, and what its readers need to know of the commit table.
 *
 * <p>The order is what makes it right. The low watermark is read first, and no later read point is taken: every
 * transaction that commits before it has its commit entry by then. Then the ancient history mark is read, then
 * the commit table is read, then the data: a transaction that completes in between shows by its entry or by its shadow
 * cells, one whose entry was pruned before, by the journal. When the data were read, the mark is read again:
 * history GC moves it before it deletes anything, so a reader that still finds it at or before the read point has seen
 * everything. Each piece of a live table does so at its end, or when no more of its rows are asked for; where an HBase
 * snapshot is made of the data, it is enough to look when that stands. Mark and data are found by the table's name, so
 * whoever looks again sees to it that the name still stands for the same table: the time of its state is known from
 * before the commit table is read.
 */
final class AsOf implements Serializable {
    private static final long serialVersionUID = 1;
    /** Said of the mark at the second look. */
    static final String OVERTAKEN = " by now; history GC has overtaken this read";
    /** The commit table's row that holds the low watermark, and its qualifier. */
    static final byte[] LOW_WATERMARK_ROW = Bytes.toBytes("LOW_WATERMARK");
    static final byte[] LOW_WATERMARK = Bytes.toBytes("LWC");
    /** As {@code lowtide.history.advice.BUCKETS}: the last one holds all that is older. */
    private static final int LAST_BUCKET = 23;

    /** Versions with a commit timestamp below it are seen. */
    final long readPoint;
    /** Whether the oracle is on the world's clock. */
    private final boolean world;
    private final Commits commits;
    private final Journal journal;
    /** The time of the table's state when the read began. */
    private final long stated;
    /**
     * Why families cannot be read that nothing marks as transactions', and that keep versions from readers: they can as
     * long as they hold no transaction's cell.
     */
    private final TreeMap<String, String> unfit;

    AsOf(long readPoint, boolean world, Commits commits, Journal journal, long stated, TreeMap<String, String> unfit) {
        this.readPoint = readPoint;
        this.world = world;
        this.commits = commits;
        this.journal = journal;
        this.stated = stated;
        this.unfit = unfit;
    }

    /** Prepares the read; an error says why the table cannot be read as of then. */
    static AsOf of(Options options) throws IOException {
        if (options.lowLatency) {
            throw new IllegalArgumentException("Table " + options.table
                    + " cannot be read with asOf: the oracle runs in low-latency mode (lowLatency = true,"
                    + " omid.low_latency in Lowtide's configuration), where clients write their commit entries"
                    + " themselves, as late as they like, also below the low watermark: a second read could show more."
                    + " Read the table through Omid's client, or run the oracle without lowLatency.");
        }
        Connection connection = Connections.get(options.hbase);
        long life = Tables.stated(connection, TableName.valueOf(options.commitTable));
        JsonNode recorded = Records.oracle(connection, options); // first: a job may record a higher one meanwhile
        long watermark = lowWatermark(connection, options);
        refuseLostEntries(recorded, options, life, watermark);
        boolean world = options.clock.isWorld(watermark);
        long readPoint = Moment.of(connection, options, watermark, world);
        if (readPoint > watermark) {
            throw new IllegalArgumentException("Option asOf = " + options.asOf + " is the read point "
                    + Moment.described(readPoint) + ", later than the low watermark " + Moment.described(watermark)
                    + " by " + (readPoint - watermark) + ": a transaction may still commit before it. Read at "
                    + watermark + " or before (asOf = latest).");
        }
        refuseOmidsCompactor(connection, options);
        TreeMap<String, String> unfit = refuseUnfit(connection, options);
        AsOf asOf = new AsOf(readPoint, world, Commits.NONE, Journal.NONE, 0, unfit);
        asOf.count(connection, options);
        asOf.refuseRemoved(connection, options, "");
        asOf.refuseRemovedElsewhere(connection, options);
        long stated = Tables.stated(connection, options.tableName());
        Commits commits = Commits.of(connection, options, readPoint);
        if (Tables.stated(connection, TableName.valueOf(options.commitTable)) != life) {
            throw new IllegalStateException("The commit table " + options.commitTable + " was made anew, restored, or"
                    + " disabled and enabled while it was read. Make the DataFrame anew.");
        }
        Journal journal = Journal.of(connection, options); // after the commit table
        return new AsOf(readPoint, world, commits, journal, stated, unfit);
    }

    /**
     * Fails where jobs would not work beside the commit table either, as {@code lowtide.store.oracle} has it: it may
     * have lost entries that alone prove commits, and their cells would not be shown.
     *
     * @param recorded what runs remember of it; a missing node: nothing
     * @param life when it was made, enabled or restored last
     */
    static void refuseLostEntries(JsonNode recorded, Options options, long life, long watermark) {
        long known = recorded.path("commit_table").asLong();
        if (known != 0 && known != life) {
            throw new IllegalArgumentException("Table " + options.table + " cannot be read with asOf: the commit table "
                    + options.commitTable + " was disabled and enabled, truncated, restored or made anew, or had a TTL,"
                    + " or commitTable names another, since a job saw it: entries may be lost that alone proved"
                    + " commits. If it has all its entries: lowtide commit-table whole. If they are lost for good, or"
                    + " nobody knows: start the oracle again, then lowtide state reset --same-oracle, and read through"
                    + " Omid's client what was written before.");
        }
        if (watermark < recorded.path("low_watermark").asLong(Long.MIN_VALUE) || recorded.has("back")) {
            throw new IllegalArgumentException("Table " + options.table + " cannot be read with asOf: the low watermark"
                    + " has gone back from " + recorded.path("low_watermark").asLong() + " to "
                    + recorded.path("back").asLong(watermark) + ": the oracle was made anew or has forgotten its"
                    + " timestamps, or this is another oracle, and read points mean nothing. See lowtide state reset.");
        }
    }

    /**
     * The commit timestamp of the transaction that wrote a cell without shadow cell at this timestamp, or {@link
     * Omid#NONE}.
     */
    long proof(long timestamp) throws IOException {
        long commit = commits.of(timestamp);
        return commit != Omid.NONE || isNoOracles(timestamp) ? commit : journal.of(timestamp);
    }

    /** Fails where a transaction's cell was met in a family that {@link #unfit nobody took for transactions'}. */
    void met(String family) {
        String why = unfit.get(family);
        if (why != null) {
            throw new IllegalStateException(why);
        }
    }

    /** Whether there is such a family. */
    boolean hasUnfit() {
        return !unfit.isEmpty();
    }

    /** Whether {@link #met} fails for the family. */
    boolean isUnfit(byte[] family) {
        return unfit.containsKey(Bytes.toString(family));
    }

    /**
     * Whether a world clock's oracle cannot have given it: a plain put's milliseconds, of which the journal holds and
     * has let go of nothing.
     */
    private boolean isNoOracles(long timestamp) {
        return world && !OracleClock.isWorlds(timestamp);
    }

    /**
     * Counts the read by its age, refused ones too, for {@code lowtide history advise}. Readers may lack the right to
     * write there: then nothing is counted.
     */
    private void count(Connection connection, Options options) {
        if (!world) {
            return; // a counter's ages need its samples; the holds still tell
        }
        int bucket = bucket(System.currentTimeMillis() - readPoint / OracleClock.UNITS_PER_MILLI);
        try (Table table = connection.getTable(TableName.valueOf(options.stateTable))) {
            table.incrementColumnValue(Records.readsRow(options.table), Records.FAMILY, Records.readsColumn(bucket), 1);
        } catch (IOException e) {
            // The read itself is what was asked for.
        }
    }

    /**
     * The bucket of an age in ms, as {@code lowtide.history.advice} counts: bucket n has those from 2^(n-1) up to 2^n
     * minutes.
     */
    static int bucket(long age) {
        return Math.min(64 - Long.numberOfLeadingZeros(Math.max(0, age) / 60_000), LAST_BUCKET);
    }

    /** Fails where the ancient history mark has passed the read point, or somebody removes history without any mark. */
    void checkMark(Options options, String since) throws IOException {
        Connection connection = Connections.get(options.hbase);
        refuseOmidsCompactor(connection, options);
        refuseRemoved(connection, options, since);
    }

    private void refuseRemoved(Connection connection, Options options, String since) throws IOException {
        long mark = Records.mark(connection, options);
        if (readPoint < mark) {
            throw new IllegalArgumentException("The read point " + Moment.described(readPoint) + " of " + options.table
                    + " lies " + (mark - readPoint) + " before its ancient history mark " + Moment.described(mark)
                    + since + ": that history was removed. Read at " + mark + " or later (as soon as the low watermark"
                    + " has passed it); to keep more from now on, raise history_max_age for " + options.table + ", or"
                    + " take a hold (hold = true, or lowtide hold add).");
        }
    }

    /**
     * Fails where the table may have been here under another name when history was removed of it. Once is enough: of a
     * clone that was before it was made.
     */
    private void refuseRemovedElsewhere(Connection connection, Options options) throws IOException {
        long any = Records.markOfAny(connection, options);
        if (readPoint < any) {
            throw new IllegalArgumentException("The read point " + Moment.described(readPoint) + " of " + options.table
                    + " lies " + (any - readPoint) + " before " + Moment.described(any) + ", the greatest"
                    + " ancient history mark of any table: " + options.table + " is new to watermark_collection, or"
                    + " came from elsewhere, and a clone lacks what was removed of the table that it was made of. Read"
                    + " at " + any + " or later; a table that was made new has its own history when"
                    + " watermark_collection --execute has listed it.");
        }
    }

    /**
     * Fails where rows of the live table may have been read when their history was gone, or when it was another table.
     */
    void checkAgain(Options options) throws IOException {
        checkMark(options, OVERTAKEN);
        checkSame(options);
    }

    /**
     * Fails where the table is another than when the read began: made anew, or restored from an HBase snapshot, which
     * leaves its regions their ids.
     */
    void checkSame(Options options) throws IOException {
        if (Tables.stated(Connections.get(options.hbase), options.tableName()) != stated) {
            throw new IllegalStateException("Table " + options.table + " was made anew, restored, or disabled and"
                    + " enabled since the read began. Make the DataFrame anew.");
        }
    }

    /**
     * Fails for a table without transactions, where families of theirs keep versions from readers, and where Omid's
     * compactor was on it until lately. Returns the other families that do, each with why it cannot be read if it holds
     * a transaction's cell all the same: Omid writes them as it writes those that bear its mark.
     */
    private static TreeMap<String, String> refuseUnfit(Connection connection, Options options) throws IOException {
        JsonNode listed = Records.listed(connection, options);
        TableDescriptor table = Tables.enabled(connection, options.tableName());
        if (!Omid.marks(table) && !listed.path("kind").asText().equals("transactional")) {
            throw new IllegalArgumentException("Table " + options.table + " cannot be read with asOf: it bears no mark"
                    + " of Omid, so its cells are no transactions'. If they are, say so in Lowtide's configuration"
                    + " (tables: {" + options.table + ": {kind: transactional}}) and let watermark_collection see it;"
                    + " the view cells shows any table.");
        }
        Set<String> known = Records.unmarked(listed);
        for (ColumnFamilyDescriptor family : Omid.families(table, Records.families(listed))) {
            known.add(family.getNameAsString());
        }
        TreeMap<String, String> unfit = new TreeMap<>();
        for (ColumnFamilyDescriptor family : table.getColumnFamilies()) {
            String name = family.getNameAsString();
            String[] hides = hides(family);
            if (hides == null) {
                continue;
            }
            String why = "Table " + options.table + " cannot be read with asOf: its family " + name + " has " + hides[0]
                    + " => " + hides[1] + ", so HBase keeps versions from readers that the read point shows. In HBase's"
                    + " shell: alter '" + options.table + "', {NAME => '" + name + "', " + hides[0] + " => " + hides[2]
                    + "}; earlier read points may lack what HBase has dropped by then.";
            if (known.contains(name)) {
                throw new IllegalArgumentException(why);
            }
            unfit.put(name, why + " Nothing marks the family as transactions', and it has a transaction's cell: what is"
                    + " asked for may be the other families alone.");
        }
        if (listed.path("compactor").asBoolean()) {
            throw new IllegalArgumentException("Table " + options.table + " cannot be read with asOf: Omid's own"
                    + " compactor was on it when Lowtide listed it last, and what that removed no mark tells yet. Let"
                    + " watermark_collection see that it is gone (lowtide run watermark_collection --execute), and read"
                    + " at later read points; where the oracle counts, read the table through Omid's client.");
        }
        return unfit;
    }

    /**
     * A setting by which the family does not show all it holds, as {@code lowtide.tables.settings} has it, its value,
     * and the one that mends it; or null.
     */
    static String[] hides(ColumnFamilyDescriptor family) {
        if (family.getMaxVersions() != Integer.MAX_VALUE) {
            return new String[] {"VERSIONS", "" + family.getMaxVersions(), "" + Integer.MAX_VALUE};
        }
        if (family.getTimeToLive() != HConstants.FOREVER) {
            return new String[] {"TTL", "" + family.getTimeToLive(), "'FOREVER'"};
        }
        if (family.getKeepDeletedCells() != KeepDeletedCells.FALSE) {
            return new String[] {"KEEP_DELETED_CELLS", "" + family.getKeepDeletedCells(), "'FALSE'"};
        }
        return family.isNewVersionBehavior() ? new String[] {"NEW_VERSION_BEHAVIOR", "true", "'false'"} : null;
    }

    /**
     * Of a column's versions that began at or below the low watermark Omid's compactor keeps the one that began last,
     * also where a read point below the low watermark, or at it, sees an earlier one; no read point above it is
     * settled.
     */
    private static void refuseOmidsCompactor(Connection connection, Options options) throws IOException {
        if (Omid.compacts(Tables.enabled(connection, options.tableName()))) {
            throw new IllegalArgumentException("Table " + options.table + " cannot be read with asOf: Omid's own"
                    + " compactor is on it and removes what earlier read points need, without a mark that tells. Read"
                    + " it through Omid's client; or take the coprocessor org.apache.omid.transaction.OmidCompactor off"
                    + " the table, let watermark_collection see that, and read at later read points.");
        }
    }

    private static long lowWatermark(Connection connection, Options options) throws IOException {
        try (Table table = connection.getTable(TableName.valueOf(options.commitTable))) {
            byte[] value = table.get(new Get(LOW_WATERMARK_ROW))
                    .getValue(Bytes.toBytes(options.watermarkFamily), LOW_WATERMARK);
            if (value == null || value.length != Long.BYTES) {
                throw new IllegalArgumentException("The commit table " + options.commitTable + " has no low watermark:"
                        + " start the oracle, or name the table in the option commitTable.");
            }
            return Bytes.toLong(value);
        } catch (TableNotFoundException e) {
            throw new IllegalArgumentException("There is no commit table " + options.commitTable
                    + ": name it in the option commitTable, as the oracle has it.", e);
        }
    }
}
