package lowtide.connector;

import java.io.Serializable;
import java.util.Arrays;

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
