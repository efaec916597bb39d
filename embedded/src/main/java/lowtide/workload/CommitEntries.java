package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import com.google.protobuf.CodedInputStream;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.omid.committable.CommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTableConfig;
import org.apache.omid.transaction.CellUtils;
import org.apache.omid.tso.util.DummyCellIdImpl;

/** The commit table: its entries, invalidation marks and low watermark, and what became of a transaction. */
final class CommitEntries {

    private static final byte[] FAMILY = Bytes.toBytes(HBaseCommitTableConfig.DEFAULT_COMMIT_TABLE_CF_NAME);
    private static final byte[] COMMIT = Bytes.toBytes("C");
    private static final byte[] INVALID = Bytes.toBytes("IT");
    private static final int KEY_LENGTH = 9;
    private static final int WATERMARK_SECONDS = 20;

    private final Store store;

    CommitEntries(Store store) {
        this.store = store;
    }

    void register(Commands commands) {
        commands.add("commit_table", request -> entries());
        commands.add("watermark", request -> new JsonPrimitive(store.watermark()));
        commands.add("advance_watermark", this::advance);
        commands.add("decide", this::decide);
        commands.add("fate", this::fate);
        commands.add("add_commit_entry", this::addEntry);
        commands.add("delete_commit_entry", this::deleteEntry);
        commands.add("invalidate", request -> new JsonPrimitive(store.commitTable
                .tryInvalidateTransaction(request.get("start").getAsLong())
                .get()));
    }

    /** [T, Tc or null, is there an invalidation mark] of every row but the watermark's. */
    private JsonElement entries() throws Exception {
        JsonArray entries = new JsonArray();
        try (Table table = store.table(store.commits.getTableName());
                ResultScanner rows = table.getScanner(new Scan().addFamily(FAMILY).setCaching(1000))) {
            for (Result row : rows) {
                if (row.getRow().length == KEY_LENGTH) {
                    long start = Bytes.toLong(row.getRow(), 1);
                    byte[] distance = row.getValue(FAMILY, COMMIT);
                    entries.add(Json.array(
                            start,
                            distance == null
                                    ? JsonNull.INSTANCE
                                    : start + CodedInputStream.newInstance(distance).readInt64(),
                            row.containsColumn(FAMILY, INVALID)));
                }
            }
        }
        return entries;
    }

    /**
     * Makes the oracle forget every cell it remembers, so that the low watermark passes every transaction begun before.
     *
     * <p>A commit of {@code cells} invented cell ids pushes all others out of the oracle's conflict map. It writes no data;
     * its commit entry is deleted again. Transactions that run meanwhile are refused at their commit.
     */
    private JsonElement advance(JsonObject request) throws Exception {
        long start = store.oracle().getNewStartTimestamp().get();
        Set<DummyCellIdImpl> cells = new HashSet<>();
        for (long i = 0; i < request.get("cells").getAsLong(); i++) {
            cells.add(new DummyCellIdImpl(start + i));
        }
        long commit = store.oracle().commit(start, cells, new HashSet<>()).get();
        store.commitTable.deleteCommitEntry(start).get();
        // The oracle writes the watermark some milliseconds after it answers.
        long deadline = System.nanoTime() + WATERMARK_SECONDS * 1_000_000_000L;
        long watermark = store.watermark();
        while (watermark < commit) {
            if (System.nanoTime() > deadline) {
                throw new TimeoutException("the low watermark stays at " + watermark + ", below " + commit);
            }
            Thread.sleep(10);
            watermark = store.watermark();
        }
        return new JsonPrimitive(watermark);
    }

    /** Has the oracle commit a transaction of one invented cell, and does nothing of what a client does then. */
    private JsonElement decide(JsonObject request) throws Exception {
        long start = request.get("start").getAsLong();
        Set<DummyCellIdImpl> cells = new HashSet<>(Set.of(new DummyCellIdImpl(start)));
        return new JsonPrimitive(store.oracle().commit(start, cells, new HashSet<>()).get());
    }

    /**
     * The commit timestamp of a transaction whose client is dead and which the watermark has passed, or null.
     *
     * <p>Proofs in the order in which Omid believes them: an own shadow cell, an invalidation mark, a commit entry.
     */
    private JsonElement fate(JsonObject request) throws Exception {
        long start = request.get("start").getAsLong();
        for (JsonElement element : request.getAsJsonArray("cells")) {
            JsonArray cell = element.getAsJsonArray();
            byte[] family = Json.bytes(cell.get(2));
            byte[] shadow = CellUtils.addShadowCellSuffixPrefix(Json.bytes(cell.get(3)));
            Get get = new Get(Json.bytes(cell.get(1)))
                    .addColumn(family, shadow)
                    .setTimestamp(start + cell.get(4).getAsLong());
            try (Table table = store.connection.getTable(TableName.valueOf(cell.get(0).getAsString()))) {
                byte[] value = table.get(get).getValue(family, shadow);
                if (value != null) {
                    return new JsonPrimitive(Bytes.toLong(value));
                }
            }
        }
        Optional<CommitTable.CommitTimestamp> found =
                store.commitTable.getCommitTimestamp(start).get().toJavaUtil();
        return found.filter(CommitTable.CommitTimestamp::isValid)
                .<JsonElement>map(valid -> new JsonPrimitive(valid.getValue()))
                .orElse(JsonNull.INSTANCE);
    }

    private JsonElement addEntry(JsonObject request) throws Exception {
        CommitTable.Writer writer = new HBaseCommitTable(store.connection, store.commits).getWriter();
        writer.addCommittedTransaction(
                request.get("start").getAsLong(), request.get("commit").getAsLong());
        writer.flush();
        return null;
    }

    private JsonElement deleteEntry(JsonObject request) throws Exception {
        store.commitTable.deleteCommitEntry(request.get("start").getAsLong()).get();
        return null;
    }
}
