package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class MutationTest {
    private static final byte[] ROW = Bytes.toBytes("r");
    private static final byte[] FAMILY = Bytes.toBytes("f");
    private static final byte[] QUALIFIER = Bytes.toBytes("q");
    private static final byte[] VALUE = Bytes.toBytes("v");

    private static Mutation mutation(Mutation.Op op, long guard) {
        return new Mutation(op.name().toLowerCase(Locale.ROOT), "g", ROW, FAMILY, QUALIFIER, 100, VALUE, 150, FAMILY,
                QUALIFIER, guard);
    }

    /**
     * Where a table's clients may lose what was acknowledged, ours are synced; nowhere are they asked for less than the
     * table has.
     */
    @Test
    void outranksTheTablesDurability() {
        assertEquals(Durability.SYNC_WAL, Mutation.durability(Durability.ASYNC_WAL));
        assertEquals(Durability.SYNC_WAL, Mutation.durability(Durability.SKIP_WAL));
        for (Durability strong : List.of(Durability.USE_DEFAULT, Durability.SYNC_WAL, Durability.FSYNC_WAL)) {
            assertEquals(strong, Mutation.durability(strong));
        }
    }

    /** Each guarded mutation bears the durability that it is given, in the action that HBase takes it from. */
    @Test
    void guardedMutationsBearIt() throws IOException {
        for (Mutation.Op op : Mutation.Op.values()) {
            if (op.guarded()) {
                var action = (org.apache.hadoop.hbase.client.Mutation)
                        mutation(op, 200).guarded(Durability.SYNC_WAL).getAction();
                assertEquals(Durability.SYNC_WAL, action.getDurability(), op.name());
            }
        }
    }

    /** A put that needs a certain version beside it says which. */
    @Test
    void namesTheVersionThatMustBeThere() {
        Mutation without = mutation(Mutation.Op.PUT_COMMITTED_IF_PRESENT, Omid.NONE);
        String text = assertThrows(IllegalArgumentException.class, without::checked).getMessage();
        assertEquals("put_committed_if_present without guard_timestamp at row r", text);
    }

    private static Result found(boolean data, Long commit) {
        List<Cell> cells = new ArrayList<>();
        if (commit != null) {
            cells.add(new KeyValue(ROW, FAMILY, Omid.shadowQualifier(QUALIFIER), 100, Bytes.toBytes(commit)));
        }
        if (data) {
            cells.add(new KeyValue(ROW, FAMILY, QUALIFIER, 100, VALUE));
        }
        return Result.create(cells);
    }

    /** A cell is healed that has its shadow cell with this commit timestamp; one that is gone needs none. */
    @Test
    void seesWhatIsHealed() {
        Mutation look = mutation(Mutation.Op.SEE_HEALED, Omid.NONE);
        assertTrue(look.isHealed(found(true, 150L)));
        assertTrue(look.isHealed(found(false, null)));
        assertTrue(!look.isHealed(found(true, null)), "no shadow cell");
        assertTrue(!look.isHealed(found(true, 200L)), "another commit timestamp");
        assertEquals(0, look.bytes());
    }
}
