package lowtide.connector;

import java.io.IOException;
import java.io.Serializable;
import java.util.Arrays;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Commit timestamps by start timestamp, as the commit table has them for transactions that are not completed: sixteen
 * bytes each, for they go to every task of a read.
 */
final class Commits implements Serializable {
    private static final long serialVersionUID = 1;
    static final Commits NONE = new Gathered(0).commits();

    /** Entries in the order in which they are read. */
    static final class Gathered {
        private final int limit;
        private long[] starts = new long[1024];
        private long[] commits = new long[1024];
        private int size;

        Gathered(int limit) {
            this.limit = limit;
        }

        /** Adds an entry, by any timestamp of its transaction's cells; false: there are too many. */
        boolean add(long timestamp, long commit) {
            if (size == limit) {
                return false;
            }
            if (size == starts.length) {
                int capacity = (int) Math.min(limit, 2L * size);
                starts = Arrays.copyOf(starts, capacity);
                commits = Arrays.copyOf(commits, capacity);
            }
            starts[size] = Omid.start(timestamp);
            commits[size++] = commit;
            return true;
        }

        /** The entries by start timestamp; of several with the same the last one. */
        Commits commits() {
            long[] sorted = Arrays.stream(starts, 0, size).sorted().distinct().toArray();
            long[] beside = new long[sorted.length];
            for (int i = 0; i < size; i++) {
                beside[Arrays.binarySearch(sorted, starts[i])] = commits[i];
            }
            return new Commits(sorted, beside);
        }
    }

    private final long[] starts;
    private final long[] commits;

    private Commits(long[] starts, long[] commits) {
        this.starts = starts;
        this.commits = commits;
    }

    /**
     * Commit entries of transactions that the read point may see; a mark beside an entry outranks it. All that are
     * left: those at or below the published prune bound are mostly gone, and where they are not, a table that came back
     * from a backup may have nothing but them for a proof.
     */
    static Commits of(Connection connection, Options options, long readPoint) throws IOException {
        Gathered entries = new Gathered(options.commitLimit);
        byte[] family = Bytes.toBytes(options.commitFamily);
        try (Table table = connection.getTable(TableName.valueOf(options.commitTable))) {
            for (int bucket = 0; bucket < 16; bucket++) {
                Scan scan = new Scan().addFamily(family).setCaching(1000)
                        .withStartRow(key(bucket, 0)).withStopRow(key(bucket, readPoint));
                try (ResultScanner rows = table.getScanner(scan)) {
                    for (Result row : rows) {
                        Cell entry = row.getColumnLatestCell(family, Omid.COMMIT);
                        long start = Omid.startOfKey(row.getRow());
                        if (start == Omid.NONE || entry == null || row.containsColumn(family, Omid.INVALID)) {
                            continue;
                        }
                        long commit = commit(start, CellUtil.cloneValue(entry), options);
                        if (commit > start && commit < readPoint && !entries.add(start, commit)) {
                            throw new IllegalStateException("The commit table " + options.commitTable + " has more"
                                    + " than " + options.commitLimit + " entries that the read point "
                                    + Moment.described(readPoint) + " may need, and each task is given all of them, 16"
                                    + " bytes an entry. Let orphan_cleanup and commit_table_pruning shorten it, or set"
                                    + " the option commitLimit higher.");
                        }
                    }
                }
            }
        }
        return entries.commits();
    }

    private static byte[] key(int bucket, long start) {
        return Bytes.add(new byte[] {(byte) bucket}, Bytes.toBytes(start));
    }

    private static long commit(long start, byte[] value, Options options) {
        long commit = Omid.commit(start, value);
        if (commit == Omid.NONE) {
            throw new IllegalArgumentException("The commit table " + options.commitTable + " holds an entry that is no"
                    + " commit of Omid's: " + Bytes.toHex(value) + ". Nothing can be read with asOf beside it.");
        }
        return commit;
    }

    int size() {
        return starts.length;
    }

    /** The commit timestamp of the transaction that wrote at this timestamp, or {@link Omid#NONE}. */
    long of(long timestamp) {
        if (starts.length == 0) {
            return Omid.NONE;
        }
        int found = Arrays.binarySearch(starts, Omid.start(timestamp));
        return found < 0 ? Omid.NONE : commits[found];
    }
}
