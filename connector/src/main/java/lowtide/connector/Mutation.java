package lowtide.connector;

import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.filter.BinaryComparator;
import org.apache.hadoop.hbase.filter.ColumnRangeFilter;
import org.apache.hadoop.hbase.filter.FamilyFilter;
import org.apache.hadoop.hbase.filter.FilterList;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.util.Bytes;

/** One row of a write. Absent fields are null; an absent timestamp is {@link Omid#NONE}. */
record Mutation(String op, String region, byte[] row, byte[] family, byte[] qualifier, long timestamp, byte[] value,
        long commit, byte[] guardFamily, byte[] guardQualifier, long guardTimestamp) {

    /** What can be written. */
    enum Op {
        PUT, PUT_COMMITTED, DELETE_VERSION, DELETE_UP_TO, REMOVE_VERSION, REMOVE_UP_TO, PUT_IF_ABSENT, DELETE_IF_ABSENT,
        HEAL_IF_PRESENT, PUT_COMMITTED_IF_PRESENT, SEE_HEALED;

        boolean guarded() {
            return ordinal() >= PUT_IF_ABSENT.ordinal() && this != SEE_HEALED;
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
        boolean commits = known == Op.PUT_COMMITTED || known == Op.HEAL_IF_PRESENT
                || known == Op.PUT_COMMITTED_IF_PRESENT;
        boolean puts = known == Op.PUT || known == Op.PUT_IF_ABSENT || commits;
        // A put without value would be a tombstone to Omid: that has to be given as an empty value.
        require("value", !puts || value != null);
        require("timestamp", timestamp != Omid.NONE || known == Op.PUT || known == Op.PUT_IF_ABSENT);
        require("commit_ts", !commits && known != Op.SEE_HEALED || commit != Omid.NONE);
        if (known == Op.DELETE_IF_ABSENT || known == Op.PUT_COMMITTED_IF_PRESENT) {
            require("guard_family", guardFamily != null);
            require("guard_qualifier", guardQualifier != null);
        }
        require("guard_timestamp", known != Op.PUT_COMMITTED_IF_PRESENT || guardTimestamp != Omid.NONE);
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

    /**
     * How durably a mutation of a table is written: where the table's clients may lose what was acknowledged to them,
     * ours are synced all the same, since what follows from them (a recorded range, a pruned entry) outlives a server.
     * A mutation's own durability outranks the table's (HRegion.getEffectiveDurability). A table that asks for more, by
     * itself or by {@code hbase.wal.hsync} of its server, is asked for no less.
     */
    static Durability durability(Durability ofTable) {
        return ofTable == Durability.ASYNC_WAL || ofTable == Durability.SKIP_WAL ? Durability.SYNC_WAL : ofTable;
    }

    /** A guarded mutation; its guard and its action are one atomic step. */
    CheckAndMutate guarded(Durability durability) throws IOException {
        CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row);
        switch (checked()) {
            case PUT_IF_ABSENT:
                return check.ifNotExists(guardFamily == null ? family : guardFamily,
                                guardFamily == null ? qualifier : guardQualifier)
                        .build(new Put(row).addColumn(family, qualifier, timeToPut(), value).setDurability(durability));
            case DELETE_IF_ABSENT:
                return check.ifNotExists(guardFamily, guardQualifier)
                        .timeRange(TimeRange.between(timestamp, timestamp + 1))
                        .build(new Delete(row).addColumn(family, qualifier, timestamp).setDurability(durability));
            case HEAL_IF_PRESENT:
                return ifPresent(check, family, qualifier, timestamp).build(committed().setDurability(durability));
            case PUT_COMMITTED_IF_PRESENT:
                return ifPresent(check, guardFamily, guardQualifier, guardTimestamp)
                        .build(committed().setDurability(durability));
            default:
                throw new IllegalStateException(op);
        }
    }

    /** With a filter, because comparing with a value cannot say "is there": an empty one matches absence too. */
    private static CheckAndMutate.Builder ifPresent(CheckAndMutate.Builder check, byte[] family, byte[] qualifier,
            long timestamp) {
        return check.ifMatches(new FilterList(
                        new FamilyFilter(CompareOperator.EQUAL, new BinaryComparator(family)),
                        new ColumnRangeFilter(qualifier, true, qualifier, true)))
                .timeRange(TimeRange.between(timestamp, timestamp + 1));
    }

    private Put committed() {
        return new Put(row)
                .addColumn(family, qualifier, timestamp, value)
                .addColumn(family, Omid.shadowQualifier(qualifier), timestamp, Bytes.toBytes(commit));
    }

    /** Reads the version and its shadow cell. */
    Get look() {
        return new Get(row)
                .addColumn(family, qualifier)
                .addColumn(family, Omid.shadowQualifier(qualifier))
                .setTimestamp(timestamp);
    }

    /**
     * Whether what {@link #look} found needs no heal: the shadow cell is there as it should be, or there is no data.
     */
    boolean isHealed(Result found) {
        byte[] shadow = found.getValue(family, Omid.shadowQualifier(qualifier));
        return !found.containsColumn(family, qualifier)
                || shadow != null && Arrays.equals(shadow, Bytes.toBytes(commit));
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
            case SEE_HEALED:
                return 0;
            case PUT_COMMITTED:
            case HEAL_IF_PRESENT:
            case PUT_COMMITTED_IF_PRESENT:
                return 2 * key + value.length + Omid.PREFIX_LENGTH + Omid.SUFFIX_LENGTH + Long.BYTES;
            case REMOVE_VERSION:
            case REMOVE_UP_TO:
                return 2 * key + Omid.PREFIX_LENGTH + Omid.SUFFIX_LENGTH;
            default:
                return key;
        }
    }
}
