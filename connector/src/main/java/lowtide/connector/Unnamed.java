package lowtide.connector;

import java.util.Arrays;

/**
 * What Omid's client makes of one family's cells without qualifier when it reads at a read point: which family
 * tombstone hides the family's columns, and which put without qualifier shows.
 *
 * <p>It looks at the newest version of every column first. Where the family's newest cell without qualifier is a family
 * tombstone, it searches for the highest one that the read point sees; where it is a put, for none. Columns of which
 * the read point sees the newest version are judged by that, the others later. If the read point does not see that put,
 * the client reads on below it: two versions, then four below the last put of these, and so on, up to a batch in which
 * the read point sees a put, or that has none. A family tombstone in a batch starts the same search, before the batch's
 * puts are judged, and holds for all columns that are judged later ({@code SnapshotFilterImpl.filterCellsForSnapshot}).
 */
final class Unnamed {
    private final long readPoint;
    private long[] timestamps = new long[4];
    private long[] proofs = new long[4];
    private boolean[] tombstones = new boolean[4];
    private int count;
    // Commits of the family tombstone that hides, at first and in the end, and the timestamp of the put that shows.
    private long early;
    private long late;
    private long shown;

    Unnamed(long readPoint) {
        this.readPoint = readPoint;
        clear();
    }

    /** Another row or family begins. */
    void clear() {
        count = 0;
        early = Omid.NONE;
        late = Omid.NONE;
        shown = Omid.NONE;
    }

    /** The next cell without qualifier, from the newest on; {@link #settle} follows the last one. */
    void add(long timestamp, long proof, boolean familyTombstone) {
        if (count == timestamps.length) {
            timestamps = Arrays.copyOf(timestamps, 2 * count);
            proofs = Arrays.copyOf(proofs, 2 * count);
            tombstones = Arrays.copyOf(tombstones, 2 * count);
        }
        timestamps[count] = timestamp;
        proofs[count] = proof;
        tombstones[count++] = familyTombstone;
    }

    void settle() {
        long highest = highestTombstone();
        int from = 0;
        for (int size = 1; from < count; size *= 2) {
            int to = Math.min(count, from + size);
            int lastPut = -1;
            int seenPut = -1;
            for (int i = from; i < to; i++) {
                if (tombstones[i]) {
                    late = highest;
                } else {
                    lastPut = i;
                    seenPut = seenPut < 0 && sees(proofs[i]) ? i : seenPut;
                }
            }
            if (from == 0) {
                early = late;
            }
            if (seenPut >= 0 && !hides(late, timestamps[seenPut])) {
                shown = timestamps[seenPut];
            }
            if (seenPut >= 0 || lastPut < 0) {
                return;
            }
            from = lastPut + 1;
        }
    }

    private long highestTombstone() {
        for (int i = 0; i < count; i++) {
            if (tombstones[i] && sees(proofs[i])) {
                return proofs[i];
            }
        }
        return Omid.NONE;
    }

    /** Whether the read point sees a version with this commit timestamp. */
    boolean sees(long proof) {
        return proof != Omid.NONE && proof < readPoint;
    }

    /** The commit of the family tombstone by which a column is judged, or {@link Omid#NONE}. */
    long tombstone(boolean newestIsSeen) {
        return newestIsSeen ? early : late;
    }

    static boolean hides(long tombstone, long timestamp) {
        return tombstone != Omid.NONE && tombstone >= timestamp;
    }

    /** Whether this put without qualifier is the one that shows. */
    boolean shows(long timestamp) {
        return shown == timestamp;
    }
}
