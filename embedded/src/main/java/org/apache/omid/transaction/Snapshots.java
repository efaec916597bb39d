package org.apache.omid.transaction;

import java.io.IOException;
import java.util.HashSet;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Table;
import org.apache.omid.transaction.AbstractTransaction.VisibilityLevel;

/**
 * Tables as Omid's own reader shows them at any read timestamp.
 *
 * <p>Omid's reader repairs while it reads: it writes the shadow cell of a committed cell that has none. That is wanted in
 * production and unwanted in a test that looks at a store before and after, so it can be left out; what is shown is the
 * same.
 */
public final class Snapshots {

    /** No oracle ran before this: the reader then never invalidates a transaction (as with every DIRECT client). */
    private static final long NO_EPOCH = -1;

    private Snapshots() {}

    /** A read-only transaction that sees what was committed before {@code timestamp}. */
    public static Transaction at(long timestamp, HBaseTransactionManager manager) {
        return new HBaseTransaction(
                timestamp, timestamp, VisibilityLevel.SNAPSHOT, NO_EPOCH, new HashSet<>(), new HashSet<>(), manager, false);
    }

    /** A transactional view of a table whose reads do or do not heal. */
    public static TTable table(Table table, boolean heal) throws IOException {
        if (heal) {
            return new TTable(table);
        }
        return new TTable(table, new SnapshotFilterImpl(new HTableAccessWrapper(table, table) {
            @Override
            public void put(Put shadowCell) {
                // The reader wants to heal.
            }
        }));
    }
}
