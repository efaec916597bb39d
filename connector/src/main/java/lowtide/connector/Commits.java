package lowtide.connector;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** Commit timestamps by start timestamp, as the commit table has them for transactions that are not completed. */
final class Commits implements Serializable {
    private static final long serialVersionUID = 1;
    static final Commits NONE = new Commits(new TreeMap<>());

    private final long[] starts;
    private final long[] commits;

    Commits(TreeMap<Long, Long> entries) {
        starts = new long[entries.size()];
        commits = new long[entries.size()];
        int i = 0;
        for (Map.Entry<Long, Long> entry : entries.entrySet()) {
            starts[i] = entry.getKey();
            commits[i++] = entry.getValue();
        }
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
