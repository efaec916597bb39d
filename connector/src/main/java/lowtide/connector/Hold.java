package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Instant;
import java.util.Arrays;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.CompareOperator;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * A hold on a table's history for one read, as {@code lowtide.history} takes them: written first, then the mark is
 * looked at. It is renewed by the driver as long as the read is referenced, and let go when it is not any more, or
 * when the driver ends; a driver that dies holds nothing after {@link #LASTING_MILLIS}.
 */
class Hold implements Runnable {
    private static final long LASTING_MILLIS = TimeUnit.MINUTES.toMillis(10);
    /** As {@code hold_max_age} ships; a read that lasts longer fails at its end if the mark has passed it. */
    private static final long LONGEST_MILLIS = TimeUnit.DAYS.toMillis(7);
    private static final byte[] FAMILY = Bytes.toBytes("s");
    private static final byte[] VALUE = Bytes.toBytes("value");
    private static final byte[] MARK = Bytes.toBytes("mark");
    private static final byte[] INTENDED = Bytes.toBytes("intended");
    /** As {@code lowtide.state.ANNOUNCED_FOR}. */
    private static final long ANNOUNCED_MILLIS = TimeUnit.HOURS.toMillis(1);
    private static final ScheduledExecutorService RENEWALS = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread thread = new Thread(work, "lowtide-holds");
        thread.setDaemon(true);
        return thread;
    });

    private final Options options;
    private final String id = "read-" + UUID.randomUUID();
    private final long snapshot;
    private final long taken = System.currentTimeMillis();
    byte[] recorded;
    private ScheduledFuture<?> renewal;

    Hold(Options options, long snapshot) {
        this.options = options;
        this.snapshot = snapshot;
    }

    /** Who holds, where nobody says: as {@code lowtide.history.myself} has it. */
    static String myself() {
        String user = System.getProperty("user.name", "a Spark driver");
        try {
            return user + "@" + InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return user;
        }
    }

    /** Takes a hold that lasts as long as the reader is referenced. */
    static void take(Options options, AsOf asOf, Object reader) throws IOException {
        Hold hold = new Hold(options, asOf.snapshot);
        hold.recorded = hold.record(hold.taken + LASTING_MILLIS);
        try (Table table = hold.table()) {
            table.put(new Put(hold.row()).addColumn(FAMILY, VALUE, hold.recorded).setDurability(Durability.SYNC_WAL));
        } catch (TableNotFoundException e) {
            throw new IllegalArgumentException("Option hold = true: there is no table " + options.stateTable + " to take the"
                    + " hold in. Where Lowtide never ran nothing removes history, and no hold is needed; else name its table"
                    + " in the option stateTable.", e);
        }
        try {
            hold.refuseIntended();
            asOf.checkMark(options, "");
        } catch (IOException | RuntimeException e) {
            hold.release();
            throw e;
        }
        hold.renewal = RENEWALS.scheduleAtFixedRate(hold::renew, LASTING_MILLIS / 3, LASTING_MILLIS / 3,
                TimeUnit.MILLISECONDS);
        Endings.with(reader, hold);
    }

    /**
     * Fails where a run of history GC is about to apply a mark above the snapshot. Of a run that announced it long ago and has not
     * applied it the claim is taken, as {@code StateStore.overtake} has it: that run can then no longer apply it. It may
     * have done so just before, so the applied mark is to be looked at after this.
     */
    void refuseIntended() throws IOException {
        try (Table table = table()) {
            byte[] row = Bytes.toBytes("history/" + options.table);
            Result known = table.get(new Get(row).addColumn(FAMILY, MARK).addColumn(FAMILY, INTENDED));
            byte[] claim = known.getValue(FAMILY, INTENDED);
            JsonNode announced = json(claim);
            long intended = announced.path("mark").asLong();
            long applied = json(known.getValue(FAMILY, MARK)).path("mark").asLong();
            long ends = announced.path("at").asLong() + ANNOUNCED_MILLIS;
            boolean dead = applied < intended && snapshot >= applied && System.currentTimeMillis() >= ends;
            if (snapshot >= intended || dead && overtakes(table, row, claim, announced, applied)) {
                return;
            }
            throw new IllegalArgumentException("A run of history_gc is about to remove the history of "
                    + options.table + " before " + intended + ", so a hold at " + snapshot
                    + " comes too late. Read at " + intended + " or later, or try again after it (if it was killed: from "
                    + Instant.ofEpochMilli(ends) + " on).");
        }
    }

    private boolean overtakes(Table table, byte[] row, byte[] claim, JsonNode announced, long applied)
            throws IOException {
        ObjectNode mine = new ObjectMapper().createObjectNode();
        mine.put("at", System.currentTimeMillis());
        mine.put("claim", UUID.randomUUID().toString());
        mine.put("mark", applied);
        if (announced.has("removing")) {
            mine.set("removing", announced.get("removing")); // to be overtaken does not end a write under way
        }
        mine.put("run", "hold " + id);
        byte[] taken = Bytes.toBytes(mine.toString());
        Put put = new Put(row).addColumn(FAMILY, INTENDED, taken).setDurability(Durability.SYNC_WAL);
        return table.checkAndMutate(CheckAndMutate.newBuilder(row)
                .ifMatches(FAMILY, INTENDED, CompareOperator.EQUAL, claim).build(put)).isSuccess()
                // HBase's client repeats a check whose answer it lost, and is refused by what it wrote itself.
                || Arrays.equals(taken, table.get(new Get(row).addColumn(FAMILY, INTENDED)).getValue(FAMILY, INTENDED));
    }

    private static JsonNode json(byte[] value) throws IOException {
        return value == null || value.length == 0 ? MissingNode.getInstance() : new ObjectMapper().readTree(value);
    }

    /** Lets go. */
    @Override
    public void run() {
        renewal.cancel(false);
        try {
            release();
        } catch (IOException e) {
            // It expires by itself.
        }
    }

    /** What it throws would end the renewals. */
    synchronized void renew() {
        long expires = Math.min(System.currentTimeMillis() + LASTING_MILLIS, taken + LONGEST_MILLIS);
        byte[] longer = record(expires);
        try (Table table = table()) {
            Put put = new Put(row()).addColumn(FAMILY, VALUE, longer).setDurability(Durability.SYNC_WAL);
            if (table.checkAndMutate(CheckAndMutate.newBuilder(row())
                    .ifMatches(FAMILY, VALUE, CompareOperator.EQUAL, recorded).build(put)).isSuccess()) {
                recorded = longer;
                return;
            }
            // Nobody else renews it: what stands there is this renewal, which HBase's client repeated because its answer
            // was lost, or an earlier one of which no answer came at all. Nothing: it expired, or was released by hand.
            byte[] stands = table.get(new Get(row()).addColumn(FAMILY, VALUE)).getValue(FAMILY, VALUE);
            if (stands != null && stands.length > 0) { // an empty one was let go
                recorded = stands;
            }
        } catch (IOException | RuntimeException e) {
            // Tried again before it expires; what it did not hold any more the read sees at its end.
        }
    }

    private synchronized void release() throws IOException {
        try (Table table = table()) {
            table.delete(new Delete(row()));
        }
    }

    /** The state table; a test gives one of its own. */
    Table table() throws IOException {
        return Connections.get(options.hbase).getTable(TableName.valueOf(options.stateTable));
    }

    private byte[] row() {
        return Bytes.toBytes("hold/" + options.table + "/" + id);
    }

    /** The hold as lowtide.ancient.Hold writes it: keys in order, so that both compare alike. */
    private byte[] record(long expires) {
        ObjectNode node = new ObjectMapper().createObjectNode();
        node.put("expires", expires);
        node.put("id", id);
        node.put("owner", options.holdOwner);
        node.put("reason", "a read with asOf");
        node.put("table", options.table);
        node.put("taken", taken);
        node.put("timestamp", snapshot);
        return Bytes.toBytes(node.toString());
    }
}
