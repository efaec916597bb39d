package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Commits whose entries were pruned, as {@code lowtide.journal.life} keeps them: the proof of cells that came back from
 * a backup and have lost their shadow cells with it.
 *
 * <p>Asked only for transactions that neither a shadow cell nor the commit table proves, once for each: a cleaned table
 * has none but orphans. An entry is in the journal before it leaves the commit table, so who asks after he has read
 * that misses none. What the journal cannot tell fails the read: {@code orphan_cleanup} decides about such cells, or
 * names them.
 */
class Journal implements Serializable {
    private static final long serialVersionUID = 1;
    static final byte[] FAMILY = Bytes.toBytes("j");
    /** The qualifier under which stands who decided, where a person did. */
    static final byte[] DECIDED = Bytes.toBytes("by");
    /** The journal's row about itself: what it let go of, and how far was pruned into it. */
    static final byte[] OWN_ROW = Bytes.toBytes("journal");
    /** Of a store in which nothing was ever pruned. */
    static final Journal NONE = new Journal(null) {
        private static final long serialVersionUID = 1;

        @Override
        long of(long timestamp) {
            return Omid.NONE;
        }
    };

    private final Options options;
    private transient Map<Long, Long> known;

    Journal(Options options) {
        this.options = options;
    }

    /** The journal, where Lowtide's records say that there is one, or where it outlived them. */
    static Journal of(Connection connection, Options options) throws IOException {
        JsonNode remembered = Records.journal(connection, options);
        if (remembered.path("there").asBoolean() || remembered.path("horizon").asLong() > 0) {
            return new Journal(options);
        }
        try (Admin admin = connection.getAdmin()) {
            return admin.tableExists(TableName.valueOf(options.journalTable)) ? new Journal(options) : NONE;
        }
    }

    /**
     * The commit timestamp of the transaction that wrote at this timestamp; {@link Omid#NONE} where it never committed.
     */
    long of(long timestamp) throws IOException {
        if (known == null) {
            known = new HashMap<>();
        }
        long start = Omid.start(timestamp);
        Long found = known.get(start);
        if (found == null) {
            found = read(Connections.get(options.hbase), start);
            known.put(start, found);
        }
        return found;
    }

    long read(Connection connection, long start) throws IOException {
        Result row;
        JsonNode ownRow = MissingNode.getInstance();
        JsonNode remembered;
        try (Table table = connection.getTable(TableName.valueOf(options.journalTable))) {
            row = table.get(new Get(Omid.commitKey(start)).addFamily(FAMILY));
            // After the row was looked for: the horizon is moved before anything goes, in the journal first.
            remembered = Records.journal(connection, options);
            JsonNode own = Records.parsed(table.get(new Get(OWN_ROW).addFamily(FAMILY)), FAMILY, Records.VALUE);
            ownRow = own == null ? ownRow : own;
        } catch (TableNotFoundException e) {
            row = null; // reported lost: below its horizon nothing is decided
            remembered = Records.journal(connection, options);
        }
        if (row == null && remembered.path("there").asBoolean()) {
            throw new IllegalArgumentException("The journal " + options.journalTable
                    + " is gone, and with it the proofs of what was pruned: name it in the option journalTable, as"
                    + " Lowtide's configuration has it (state.journal_table).");
        }
        if (row == null || row.isEmpty()) {
            if (start <= Math.max(remembered.path("horizon").asLong(), ownRow.path("horizon").asLong())) {
                throw undecided(start, "the journal " + options.journalTable + " has let go of its time");
            }
            if (row != null && !whole(connection, remembered, ownRow)) {
                throw undecided(start, "the journal " + options.journalTable + " may have lost its row");
            }
            return Omid.NONE;
        }
        OptionalLong outcome = outcome(row, Records.numberedAnew(connection, options));
        return outcome.orElseThrow(() -> undecided(start, "its row in the journal " + options.journalTable
                + " is of an unknown form, or older than the oracle, which has given the number again"));
    }

    /**
     * What a row tells of its transaction, as {@code lowtide_spark.frames.omid.journal} has it: its commit timestamp,
     * which outranks a mark beside it; {@link Omid#NONE}: it never committed. Empty where the row tells nothing: any of
     * its cells is of an unknown form, or older than {@code since}, from when on the oracle gives its numbers again.
     */
    static OptionalLong outcome(Result row, long since) {
        OptionalLong outcome = OptionalLong.empty();
        for (Cell cell : row.rawCells()) {
            byte[] value = CellUtil.cloneValue(cell);
            boolean commit = CellUtil.matchingQualifier(cell, Omid.COMMIT) && value.length == Long.BYTES;
            boolean mark = CellUtil.matchingQualifier(cell, Omid.INVALID)
                    && (Arrays.equals(value, Omid.INVALID_VALUE) || Arrays.equals(value, Omid.OWN_INVALID_VALUE));
            if (!CellUtil.matchingQualifier(cell, DECIDED) && (cell.getTimestamp() < since || !commit && !mark)) {
                return OptionalLong.empty();
            }
            if (commit) {
                outcome = OptionalLong.of(Bytes.toLong(value));
            } else if (mark && outcome.isEmpty()) {
                outcome = OptionalLong.of(Omid.NONE);
            }
        }
        return outcome;
    }

    private boolean whole(Connection connection, JsonNode remembered, JsonNode ownRow) throws IOException {
        return whole(remembered, ownRow, Tables.stated(connection, TableName.valueOf(options.journalTable)));
    }

    /**
     * Whether a row that is not in the journal was never there, as {@code lowtide.journal.life} has it; of a TTL the
     * jobs tell.
     *
     * @param stated when the journal's table was made, enabled or restored last
     */
    static boolean whole(JsonNode remembered, JsonNode ownRow, long stated) {
        long known = remembered.path("stated").asLong();
        boolean same = known == 0 || known == stated && !ownRow.isMissingNode()
                && ownRow.path("pruned").asLong() >= remembered.path("pruned").asLong();
        return same && remembered.path("doubt").asText().isEmpty();
    }

    private IllegalStateException undecided(long start, String why) {
        return new IllegalStateException("Table " + options.table + " cannot be read with asOf: nothing tells whether"
                + " the transaction that began at " + start + " committed, for " + why + ". Run: lowtide run"
                + " orphan_cleanup --table " + options.table + " --full --execute; it decides about its cells, or names"
                + " what is to be done.");
    }
}
