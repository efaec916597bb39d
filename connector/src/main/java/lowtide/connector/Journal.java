package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.Serializable;
import java.util.HashMap;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Commits whose entries were pruned, as {@code lowtide.journal} keeps them: the proof of cells that came back from a backup
 * and have lost their shadow cells with it.
 *
 * <p>Asked only for transactions that neither a shadow cell nor the commit table proves, once for each: a cleaned table
 * has none but orphans. An entry is in the journal before it leaves the commit table, so who asks after he has read that
 * misses none. What the journal cannot tell fails the read: {@code orphan_cleanup} decides about such cells, or names them.
 */
class Journal implements Serializable {
    private static final long serialVersionUID = 1;
    static final byte[] FAMILY = Bytes.toBytes("j");
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

    /** The journal, as far as Lowtide's records say that there is one. */
    static Journal of(Connection connection, Options options) throws IOException {
        JsonNode remembered = Records.journal(connection, options);
        return remembered.path("there").asBoolean() || remembered.path("horizon").asLong() > 0 ? new Journal(options) : NONE;
    }

    /** The commit timestamp of the transaction that wrote at this timestamp; {@link Omid#NONE} where it never committed. */
    long of(long timestamp) throws IOException {
        if (known == null) {
            known = new HashMap<>();
        }
        long start = Omid.start(timestamp);
        Long found = known.get(start);
        if (found == null) {
            found = look(Connections.get(options.hbase), start);
            known.put(start, found);
        }
        return found;
    }

    private long look(Connection connection, long start) throws IOException {
        Result row;
        try (Table table = connection.getTable(TableName.valueOf(options.journalTable))) {
            row = table.get(new Get(Omid.commitKey(start)).addFamily(FAMILY));
        } catch (TableNotFoundException e) {
            row = null; // said to be lost: below its horizon nothing is decided
        }
        // After the row was looked for: it is moved before anything goes.
        JsonNode remembered = Records.journal(connection, options);
        if (row == null && remembered.path("there").asBoolean()) {
            throw new IllegalArgumentException("The journal " + options.journalTable + " is gone, and with it the proofs of what was"
                    + " pruned: name it in the option journalTable, as Lowtide's configuration has it (state.journal_table).");
        }
        if (row == null || row.isEmpty()) {
            if (start <= remembered.path("horizon").asLong()) {
                throw undecided(start, "the journal " + options.journalTable + " has let go of its time");
            }
            return Omid.NONE;
        }
        Cell commit = row.getColumnLatestCell(FAMILY, Omid.COMMIT);
        if (commit == null && row.containsColumn(FAMILY, Omid.INVALID)) {
            return Omid.NONE; // beside a commit it does not count, as the jobs have it
        }
        if (commit == null || commit.getValueLength() != Long.BYTES
                || commit.getTimestamp() < Records.numberedAnew(connection, options)) {
            throw undecided(start, "its row in the journal " + options.journalTable
                    + " is of an unknown form, or older than the oracle, which has given the number again");
        }
        return Bytes.toLong(CellUtil.cloneValue(commit));
    }

    private IllegalStateException undecided(long start, String why) {
        return new IllegalStateException("Table " + options.table + " cannot be read as of a snapshot: nothing tells whether the"
                + " transaction that began at " + start + " committed, for " + why + ". Run: lowtide run orphan_cleanup --table "
                + options.table + " --full --execute; it decides about its cells, or names what is to be done.");
    }
}
