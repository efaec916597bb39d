package lowtide.connector;

import java.io.IOException;
import java.util.Locale;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.FamilyFilter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.util.Bytes;

/** One row of a write. Absent fields are null; an absent timestamp is {@link Omid#NONE}. */
record Mutation(String op, String region, byte[] row, byte[] family, byte[] qualifier, long timestamp, byte[] value,
        long commit, byte[] guardFamily, byte[] guardQualifier) {

    /** What can be written. */
    enum Op {
        PUT, PUT_COMMITTED, DELETE_VERSION, DELETE_UP_TO, REMOVE_VERSION, REMOVE_UP_TO, PUT_IF_ABSENT, DELETE_IF_ABSENT,
        HEAL_IF_PRESENT;

        boolean guarded() {
            return ordinal() >= PUT_IF_ABSENT.ordinal();
        }
    }

    /** The operation; an {@link IllegalArgumentException} says what is missing for it. */
    Op checked() {
        Op known = null;
        for (Op one : Op.values()) {
            if (one.name().toLowerCase(Locale.ROOT).equals(op)) {
                known = one;
            }
        }
        if (known == null) {
            throw new IllegalArgumentException("unknown op " + op);
        }
        require("row", row != null && row.length > 0);
        require("family", family != null && family.length > 0);
        require("qualifier", qualifier != null);
        boolean commits = known == Op.PUT_COMMITTED || known == Op.HEAL_IF_PRESENT;
        boolean puts = known == Op.PUT || known == Op.PUT_IF_ABSENT || commits;
        // A put without value would be a tombstone to Omid: that has to be said with an empty value.
        require("value", !puts || value != null);
        require("timestamp", timestamp != Omid.NONE || known == Op.PUT || known == Op.PUT_IF_ABSENT);
        require("commit_ts", !commits || commit != Omid.NONE);
        if (known == Op.DELETE_IF_ABSENT) {
            require("guard_family", guardFamily != null);
            require("guard_qualifier", guardQualifier != null);
        }
        if (known == Op.PUT_IF_ABSENT && guardFamily == null != (guardQualifier == null)) {
            require(guardFamily == null ? "guard_family" : "guard_qualifier", false);
        }
        return known;
    }

    private void require(String column, boolean there) {
        if (!there) {
            throw new IllegalArgumentException(op + " without " + column
                    + (row == null ? "" : " at row " + Bytes.toStringBinary(row)));
        }
    }

    /** Adds an unguarded mutation to the row's put or delete. */
    void addTo(Put put, Delete delete) {
        switch (checked()) {
            case PUT:
                put.addColumn(family, qualifier, timeToPut(), value);
                break;
            case PUT_COMMITTED:
                put.addColumn(family, qualifier, timestamp, value);
                put.addColumn(family, Omid.shadowQualifier(qualifier), timestamp, Bytes.toBytes(commit));
                break;
            case DELETE_VERSION:
                delete.addColumn(family, qualifier, timestamp);
                break;
            case DELETE_UP_TO:
                delete.addColumns(family, qualifier, timestamp);
                break;
            // Data and shadow cell in one mutation: a reader that met one without the other would look for the rest,
            // and Omid's never ends where a family tombstone's shadow cell is left alone.
            case REMOVE_VERSION:
                delete.addColumn(family, qualifier, timestamp);
                delete.addColumn(family, Omid.shadowQualifier(qualifier), timestamp);
                break;
            case REMOVE_UP_TO:
                delete.addColumns(family, qualifier, timestamp);
                delete.addColumns(family, Omid.shadowQualifier(qualifier), timestamp);
                break;
            default:
                throw new IllegalStateException(op);
        }
    }

    /** A guarded mutation; its guard and its action are one atomic step. */
    CheckAndMutate guarded() throws IOException {
        CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row);
        switch (checked()) {
            case PUT_IF_ABSENT:
                return check.ifNotExists(guardFamily == null ? family : guardFamily,
                                guardFamily == null ? qualifier : guardQualifier)
                        .build(new Put(row).addColumn(family, qualifier, timeToPut(), value));
            case DELETE_IF_ABSENT:
                return check.ifNotExists(guardFamily, guardQualifier)
                        .timeRange(TimeRange.between(timestamp, timestamp + 1))
                        .build(new Delete(row).addColumn(family, qualifier, timestamp));
            case HEAL_IF_PRESENT:
                // A filter, because comparing with a value cannot say "is there": an empty one matches absence too.
                return check.ifMatches(new FilterList(
                                new FamilyFilter(CompareOperator.EQUAL, new BinaryComparator(family)),
                                new ColumnRangeFilter(qualifier, true, qualifier, true)))
                        .timeRange(TimeRange.between(timestamp, timestamp + 1))
                        .build(new Put(row)
                                .addColumn(family, qualifier, timestamp, value)
                                .addColumn(family, Omid.shadowQualifier(qualifier), timestamp, Bytes.toBytes(commit)));
            default:
                throw new IllegalStateException(op);
        }
    }

    private long timeToPut() {
        return timestamp == Omid.NONE ? HConstants.LATEST_TIMESTAMP : timestamp;
    }

    /** The bytes of the KeyValues that it writes; a delete writes a marker. */
    long bytes() {
        long key = KeyValue.getKeyValueDataStructureSize(row.length, family.length, qualifier.length, 0);
        switch (checked()) {
            case PUT:
            case PUT_IF_ABSENT:
                return key + value.length;
            case PUT_COMMITTED:
            case HEAL_IF_PRESENT:
                return 2 * key + value.length + Omid.PREFIX_LENGTH + Omid.SUFFIX_LENGTH + Long.BYTES;
            case REMOVE_VERSION:
            case REMOVE_UP_TO:
                return 2 * key + Omid.PREFIX_LENGTH + Omid.SUFFIX_LENGTH;
            default:
                return key;
        }
    }
}
