package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.hbase.ByteBufferKeyValue;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CoprocessorDescriptorBuilder;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OmidTest {
    private static Kind kind(String qualifier, String value) {
        byte[] q = Bytes.toBytes(qualifier);
        KeyValue cell = new KeyValue(Bytes.toBytes("r"), Bytes.toBytes("f"), q, 50, Bytes.toBytes(value));
        Cell buffered = new ByteBufferKeyValue(ByteBuffer.wrap(cell.getBuffer()), cell.getOffset(), cell.getLength());
        assertEquals(Omid.kind(cell, q.length), Omid.kind(buffered, q.length), "wherever the bytes lie");
        return Omid.kind(cell, q.length);
    }

    /** A tombstone is an empty value, of a family one without qualifier, or the words that Omid wrote before 1.0.0. */
    @Test
    void tombstonesAreKnownByTheirValues() {
        assertEquals(Kind.TOMBSTONE, kind("q", ""));
        assertEquals(Kind.FAMILY_TOMBSTONE, kind("", ""));
        assertEquals(Kind.TOMBSTONE, kind("q", "__OMID_TOMBSTONE__"));
        assertEquals(Kind.PUT, kind("q", "__OMID_TOMBSTONE_?"));
        assertEquals(Kind.PUT, kind("q", "v"));
    }

    /** The transaction of a checkpoint is the one that wrote at the multiple of 50 below. */
    @Test
    void checkpointsBelongToTheirTransaction() {
        for (long checkpoint = 0; checkpoint < 50; checkpoint++) {
            assertEquals(1000, Omid.start(1000 + checkpoint));
        }
        assertEquals(1050, Omid.start(1050));
    }

    private static TableDescriptor table(String flag, List<String> coprocessors) throws Exception {
        ColumnFamilyDescriptorBuilder family = ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes("f"));
        if (flag != null) {
            family.setValue(Bytes.toBytes("OMID_ENABLED"), Bytes.toBytes(flag));
        }
        TableDescriptorBuilder table =
                TableDescriptorBuilder.newBuilder(TableName.valueOf("t")).setColumnFamily(family.build());
        for (String name : coprocessors) {
            table.setCoprocessor(CoprocessorDescriptorBuilder.newBuilder(name).build());
        }
        return table.build();
    }

    /**
     * Each coprocessor that Omid or Phoenix puts on a transactional table marks it, as in {@code
     * lowtide.tables.inventory}.
     */
    @ParameterizedTest
    @ValueSource(strings = {"org.apache.omid.transaction.OmidCompactor",
            "org.apache.omid.transaction.OmidSnapshotFilter",
        "org.apache.phoenix.coprocessor.OmidTransactionalProcessor", "org.apache.phoenix.coprocessor.OmidGCProcessor",
        "org.apache.phoenix.index.PhoenixTransactionalIndexer"})
    void coprocessorsMark(String name) throws Exception {
        assertTrue(Omid.marks(table(null, List.of("org.example.Other", name))), name);
    }

    /** So does the flag of a family, where it says true; a table with neither bears no mark. */
    @Test
    void theFlagOfAFamilyMarks() throws Exception {
        assertTrue(Omid.marks(table("TRUE", List.of())));
        assertFalse(Omid.marks(table("false", List.of())));
        assertFalse(Omid.marks(table(null, List.of("org.example.Other"))));
    }
}
