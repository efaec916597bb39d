package lowtide.connector;

import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.hbase.ByteBufferExtendedCell;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.CoprocessorDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.ByteBufferUtils;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The shape of Omid's cells, as {@code org.apache.omid.transaction.CellUtils} defines it. Shape only: what a cell
 * means for a transaction is decided by the jobs.
 *
 * <p>A data cell has its qualifier q and the timestamp T + k (T a multiple of 50, k the checkpoint 0..49). The shadow
 * cell beside it has the same row, family and timestamp, the qualifier {@code 00 C2 80 | q | C2 80} and the commit
 * timestamp as eight bytes, big-endian.
 */
final class Omid {
    /** Checkpoints of one transaction; base timestamps are multiples of it. */
    static final long CHECKPOINTS = 50;
    /** In place of a timestamp that is not there; HBase has no negative timestamps. */
    static final long NONE = Long.MIN_VALUE;

    /**
     * Qualifiers of the commit table and of Lowtide's journal: a commit, and the mark of a transaction that was
     * aborted.
     */
    static final byte[] COMMIT = Bytes.toBytes("C");
    static final byte[] INVALID = Bytes.toBytes("IT");
    /** The value of that mark, as Omid puts it, and as Lowtide does. */
    static final byte[] INVALID_VALUE = {0, 0, 0, 1};
    static final byte[] OWN_INVALID_VALUE = {0, 0, 0, 2};

    static final int PREFIX_LENGTH = 3;
    static final int SUFFIX_LENGTH = 2;
    private static final byte[] PREFIX = {0x00, (byte) 0xC2, (byte) 0x80};
    private static final byte[] AFTER_PREFIX = {0x00, (byte) 0xC2, (byte) 0x81};
    private static final byte[] SUFFIX = {(byte) 0xC2, (byte) 0x80};
    /** The value of a tombstone before Omid 1.0.0. */
    private static final byte[] LEGACY_TOMBSTONE =
            "__OMID_TOMBSTONE__".getBytes(java.nio.charset.StandardCharsets.US_ASCII);

    private static final byte[] FAMILY_FLAG = Bytes.toBytes("OMID_ENABLED");
    private static final String COMPACTOR = "org.apache.omid.transaction.OmidCompactor";
    private static final List<String> COPROCESSORS = List.of(COMPACTOR,
            "org.apache.omid.transaction.OmidSnapshotFilter",
            "org.apache.phoenix.coprocessor.OmidTransactionalProcessor",
            "org.apache.phoenix.coprocessor.OmidGCProcessor", "org.apache.phoenix.index.PhoenixTransactionalIndexer");

    private Omid() {
    }

    /**
     * Whether the table's descriptor says that its cells are transactions', as {@code lowtide.tables.inventory} has it.
     */
    static boolean marks(TableDescriptor table) {
        return Arrays.stream(table.getColumnFamilies()).anyMatch(Omid::isFlagged)
                || table.getCoprocessorDescriptors().stream()
                        .anyMatch(each -> COPROCESSORS.stream().anyMatch(each.getClassName()::contains));
    }

    /**
     * The families whose cells are transactions': the flagged ones, all of a table of Phoenix's, and of one without
     * flags; and those that the inventory lists, as it does all of a table that the configuration calls transactional.
     * As {@code lowtide.tables.inventory} has it.
     */
    static ColumnFamilyDescriptor[] families(TableDescriptor table, Set<String> listed) {
        ColumnFamilyDescriptor[] all = table.getColumnFamilies();
        boolean phoenix = table.getCoprocessorDescriptors().stream().map(CoprocessorDescriptor::getClassName)
                .anyMatch(name -> name.contains(".phoenix.") && COPROCESSORS.stream().anyMatch(name::contains));
        if (phoenix || Arrays.stream(all).noneMatch(Omid::isFlagged)) {
            return all;
        }
        return Arrays.stream(all).filter(family -> isFlagged(family) || listed.contains(family.getNameAsString()))
                .toArray(ColumnFamilyDescriptor[]::new);
    }

    private static boolean isFlagged(ColumnFamilyDescriptor family) {
        return Boolean.parseBoolean(Bytes.toString(family.getValue(FAMILY_FLAG)));
    }

    /** Whether Omid's own compactor runs in the table's compactions, as its descriptor tells. */
    static boolean compacts(TableDescriptor table) {
        return table.getCoprocessorDescriptors().stream()
                .anyMatch(each -> each.getClassName().contains(COMPACTOR));
    }

    /** The start timestamp of the transaction that wrote at this timestamp. */
    static long start(long timestamp) {
        return timestamp - Math.floorMod(timestamp, CHECKPOINTS);
    }

    /**
     * The commit table's row of a transaction, and the journal's: the low four bits of its start timestamp, and that.
     */
    static byte[] commitKey(long start) {
        return Bytes.add(new byte[] {(byte) (start & 15)}, Bytes.toBytes(start));
    }

    /**
     * The start timestamp of a row of the commit table; {@link #NONE} of another row, or of one where nobody looks for
     * it.
     */
    static long startOfKey(byte[] row) {
        return row.length == 1 + Long.BYTES && row[0] == (row[Long.BYTES] & 15) ? Bytes.toLong(row, 1) : NONE;
    }

    /**
     * The commit timestamp of a commit entry's value, a varint of what it is later than the start; {@link #NONE}: it is
     * none.
     */
    static long commit(long start, byte[] value) {
        long later = varint(value);
        return later == NONE || later > Long.MAX_VALUE - start ? NONE : start + later;
    }

    /** The number in a varint that fills the bytes, of 63 bits; {@link #NONE}: they are none. */
    static long varint(byte[] value) {
        long number = 0;
        for (int i = 0; i < value.length && i < 9; i++) {
            number |= (value[i] & 0x7FL) << 7 * i;
            if (value[i] >= 0) {
                return i + 1 == value.length ? number : NONE;
            }
        }
        return NONE;
    }

    /** Whether Omid takes the qualifier for a shadow cell's: it looks at the suffix and the length only. */
    static boolean endsAsShadow(byte[] array, int offset, int length) {
        int end = offset + length;
        return length > SUFFIX_LENGTH && array[end - 1] == (byte) 0x80 && array[end - 2] == (byte) 0xC2;
    }

    /** Whether a qualifier that {@link #endsAsShadow ends as a shadow cell's} has the prefix too. */
    static boolean startsAsShadow(byte[] array, int offset, int length) {
        return length >= PREFIX_LENGTH + SUFFIX_LENGTH && array[offset] == 0
                && array[offset + 1] == (byte) 0xC2 && array[offset + 2] == (byte) 0x80;
    }

    /** Whether the qualifier sorts behind every shadow qualifier with the prefix. */
    static boolean sortsAfterShadows(byte[] array, int offset, int length) {
        if (length == 0) {
            return false;
        }
        if (array[offset] != 0) {
            return true;
        }
        if (length == 1) {
            return false;
        }
        int second = array[offset + 1] & 0xFF;
        if (second != 0xC2) {
            return second > 0xC2;
        }
        return length > 2 && (array[offset + 2] & 0xFF) > 0x80;
    }

    /** {@code 00 C2 80 | qualifier | C2 80}. */
    static byte[] shadowQualifier(byte[] qualifier) {
        byte[] shadow = new byte[PREFIX_LENGTH + qualifier.length + SUFFIX_LENGTH];
        System.arraycopy(PREFIX, 0, shadow, 0, PREFIX_LENGTH);
        System.arraycopy(qualifier, 0, shadow, PREFIX_LENGTH, qualifier.length);
        System.arraycopy(SUFFIX, 0, shadow, PREFIX_LENGTH + qualifier.length, SUFFIX_LENGTH);
        return shadow;
    }

    /** {@code 00 C2 80 | qualifier}: sorts before every shadow qualifier of a qualifier that is not lower. */
    static byte[] shadowFloor(byte[] qualifier) {
        byte[] floor = new byte[PREFIX_LENGTH + qualifier.length];
        System.arraycopy(PREFIX, 0, floor, 0, PREFIX_LENGTH);
        System.arraycopy(qualifier, 0, floor, PREFIX_LENGTH, qualifier.length);
        return floor;
    }

    /** The first qualifier behind every shadow qualifier with the prefix. */
    static byte[] afterShadows() {
        return AFTER_PREFIX.clone();
    }

    /** The kind of a data cell. */
    static Kind kind(Cell cell, int qualifierLength) {
        int length = cell.getValueLength();
        if (length == 0) {
            return qualifierLength == 0 ? Kind.FAMILY_TOMBSTONE : Kind.TOMBSTONE;
        }
        return length == LEGACY_TOMBSTONE.length && isLegacyTombstone(cell) ? Kind.TOMBSTONE : Kind.PUT;
    }

    private static boolean isLegacyTombstone(Cell cell) {
        if (cell instanceof ByteBufferExtendedCell) {
            ByteBufferExtendedCell buffered = (ByteBufferExtendedCell) cell;
            return ByteBufferUtils.equals(buffered.getValueByteBuffer(), buffered.getValuePosition(),
                    LEGACY_TOMBSTONE.length, LEGACY_TOMBSTONE, 0, LEGACY_TOMBSTONE.length);
        }
        return java.util.Arrays.equals(cell.getValueArray(), cell.getValueOffset(),
                cell.getValueOffset() + LEGACY_TOMBSTONE.length, LEGACY_TOMBSTONE, 0, LEGACY_TOMBSTONE.length);
    }
}
