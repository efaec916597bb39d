package lowtide.connector;

import java.util.Arrays;

/**
 * What hides the versions of one row and family: the higher versions of the column, and the family tombstones. It is
 * given every data cell, once, in HBase's order.
 */
final class Hiding {
    /** As the commit of what hides a version: no read point shows it. */
    private static final long BEFORE_ANY = 0;

    /**
     * What is known of the cells without qualifier where a read point is given, rather than all that is there; else
     * null.
     */
    private final Unnamed unnamed;

    // The column at hand, the smallest commit among its higher versions, and at a read point the family tombstone over
    // it.
    private byte[] column = new byte[64];
    private int columnLength;
    private long columnReplaced;
    private long columnTombstone;
    // The commits of the family tombstones that hide anything, and the smallest among all of them.
    private long[] tombstones = new long[4];
    private int tombstoneCount;
    private long familyReplaced;
    /** Whether the family has a cell without qualifier that is no family tombstone. */
    private boolean bare;

    Hiding(Unnamed unnamed) {
        this.unnamed = unnamed;
        clear();
    }

    /** Another row or family begins. */
    void clear() {
        columnLength = -1;
        columnReplaced = Omid.NONE;
        familyReplaced = Omid.NONE;
        tombstoneCount = 0;
        bare = false;
    }

    /**
     * The commit timestamp at which this version was hidden, or {@link Omid#NONE}.
     *
     * <p>A version is hidden by the higher versions of its column, and by a family tombstone whose commit timestamp is
     * not below its own timestamp. The reader uses, of the family tombstones that it sees, the highest one only
     * ({@code SnapshotFilterImpl.buildFamilyDeletionCache}), so one that commits after a higher one hides nothing.
     * It looks at the newest cell without qualifier first: where that is a put, no family tombstone is looked for, and
     * what they hid is seen again. So in a row and family with a cell without qualifier that is no family tombstone,
     * proven or not, family tombstones count as hiding nothing. At a read point, {@link Unnamed} says exactly what they
     * hide.
     *
     * @param array the qualifier, with offset and length
     * @param at the version's timestamp
     * @param proof its commit timestamp, or {@link Omid#NONE}
     */
    long of(byte[] array, int offset, int length, long at, long proof, boolean familyTombstone) {
        if (familyTombstone) {
            return unnamed == null ? ofTombstone(proof) : BEFORE_ANY;
        }
        if (columnLength != length || !Arrays.equals(column, 0, length, array, offset, offset + length)) {
            if (column.length < length) {
                column = new byte[2 * length];
            }
            System.arraycopy(array, offset, column, 0, length);
            columnLength = length;
            columnReplaced = Omid.NONE;
            columnTombstone = unnamed == null ? Omid.NONE : unnamed.tombstone(unnamed.sees(proof));
        }
        if (unnamed != null && (length == 0 ? !unnamed.shows(at) : Unnamed.hides(columnTombstone, at))) {
            return BEFORE_ANY;
        }
        bare |= length == 0;
        long before = columnReplaced;
        if (tombstoneCount > 0 && !bare) {
            long tombstone = smallestTombstoneFrom(at);
            if (tombstone != Omid.NONE && (before == Omid.NONE || tombstone < before)) {
                before = tombstone;
            }
        }
        if (proof != Omid.NONE && (columnReplaced == Omid.NONE || proof < columnReplaced)) {
            columnReplaced = proof;
        }
        return before;
    }

    private long ofTombstone(long proof) {
        long before = familyReplaced;
        if (proof != Omid.NONE && (before == Omid.NONE || proof < before)) {
            familyReplaced = proof;
            if (tombstoneCount == tombstones.length) {
                tombstones = Arrays.copyOf(tombstones, 2 * tombstoneCount);
            }
            tombstones[tombstoneCount++] = proof;
        }
        return before;
    }

    /** The commits of the tombstones descend, so the last one that is not below the timestamp is the smallest. */
    private long smallestTombstoneFrom(long at) {
        int low = 0;
        int high = tombstoneCount;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (tombstones[middle] >= at) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low == 0 ? Omid.NONE : tombstones[low - 1];
    }
}
