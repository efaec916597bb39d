package lowtide.connector;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.apache.hadoop.hbase.ByteBufferExtendedCell;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.util.ByteBufferUtils;

/**
 * The parts of one cell at a time, laid open without an object a cell. Nearly all cells are KeyValues on an array: for
 * those the lengths are read once, where the cell's own methods would read them again for every part.
 */
final class CellView {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle SHORT = MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.BIG_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
    /** In a key beside row, family and qualifier: the row's length, the family's, timestamp and type. */
    private static final int KEY_OVERHEAD = KeyValue.KEY_INFRASTRUCTURE_SIZE;

    private Cell cell;
    private byte[] scratch = new byte[256];
    private byte[] values;
    private int valueOffset;

    /** The qualifier; the array is the cell's own, or one that is used again for the next cell. */
    byte[] array;
    int offset;
    int length;
    long timestamp;
    int valueLength;
    /** Bytes of the cell as a KeyValue, without tags. */
    int bytes;

    /** Looks at another cell. */
    void set(Cell next) {
        cell = next;
        if (next instanceof KeyValue && !(next instanceof KeyValue.KeyOnlyKeyValue)) {
            KeyValue keyValue = (KeyValue) next;
            byte[] buffer = keyValue.getBuffer();
            int at = keyValue.getOffset();
            int keyLength = (int) INT.get(buffer, at);
            int key = at + KeyValue.ROW_OFFSET;
            int rowLength = (short) SHORT.get(buffer, key);
            int family = key + KeyValue.ROW_LENGTH_SIZE + rowLength;
            int familyLength = buffer[family];
            array = buffer;
            offset = family + KeyValue.FAMILY_LENGTH_SIZE + familyLength;
            length = keyLength - KEY_OVERHEAD - rowLength - familyLength;
            timestamp = (long) LONG.get(buffer, offset + length);
            values = buffer;
            valueOffset = key + keyLength;
            valueLength = (int) INT.get(buffer, at + KeyValue.KEY_LENGTH_SIZE);
            bytes = KeyValue.ROW_OFFSET + keyLength + valueLength;
        } else {
            setAny(next);
        }
    }

    private void setAny(Cell next) {
        length = next.getQualifierLength();
        timestamp = next.getTimestamp();
        valueLength = next.getValueLength();
        bytes = KeyValue.ROW_OFFSET + KEY_OVERHEAD + next.getRowLength() + next.getFamilyLength() + length
                + valueLength;
        if (next instanceof ByteBufferExtendedCell) {
            if (scratch.length < length) {
                scratch = new byte[2 * length];
            }
            ByteBufferExtendedCell buffered = (ByteBufferExtendedCell) next;
            ByteBufferUtils.copyFromBufferToArray(scratch, buffered.getQualifierByteBuffer(),
                    buffered.getQualifierPosition(), 0, length);
            array = scratch;
            offset = 0;
            values = null;
        } else {
            array = next.getQualifierArray();
            offset = next.getQualifierOffset();
            values = next.getValueArray();
            valueOffset = next.getValueOffset();
        }
    }

    /** The eight bytes of the value as a big-endian number; the caller has looked at the length. */
    long longValue() {
        if (values != null) {
            return (long) LONG.get(values, valueOffset);
        }
        ByteBufferExtendedCell buffered = (ByteBufferExtendedCell) cell;
        return ByteBufferUtils.toLong(buffered.getValueByteBuffer(), buffered.getValuePosition());
    }
}
