package lowtide.connector;

import static lowtide.connector.Records.FAMILY;
import static lowtide.connector.Records.INTENDED;
import static lowtide.connector.Records.MARK;
import static lowtide.connector.Records.VALUE;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.time.Instant;
import java.util.Arrays;
import java.util.Locale;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.Cell;
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
 * A hold on a table's history for one read, as {@code lowtide.history.holding} takes them: written first, then the mark
 * is looked at. It is renewed by the driver as long as the read is referenced, and let go when it is not any more, or
 * when the driver ends; a driver that dies holds nothing after {@link #LASTING_MILLIS}.
 */
class Hold implements Runnable {
    /** As {@code lowtide.history.holding.RENEWED_FOR}. */
    static final long LASTING_MILLIS = TimeUnit.MINUTES.toMillis(10);
    /** As {@code lowtide.store.history.ANNOUNCED_FOR}. */
    static final long ANNOUNCED_MILLIS = TimeUnit.HOURS.toMillis(1);
    private static final ScheduledExecutorService RENEWALS = Executors.newSingleThreadScheduledExecutor(work -> {
        Thread thread = new Thread(work, "lowtide-holds");
        thread.setDaemon(true);
        return thread;
    });

    private final Options options;
    private final String id = "read-" + UUID.randomUUID();
    private final long readPoint;
    /** By HBase's clock, as all times of a hold: history GC looks at it by that, and a driver's may be hours off. */
    long taken;
    byte[] recorded;
    private ScheduledFuture<?> renewal;

    Hold(Options options, long readPoint) {
        this.options = options;
        this.readPoint = readPoint;
    }

    /** Takes a hold that lasts as long as the reader is referenced. */
    static void take(Options options, AsOf asOf, Object reader) throws IOException {
        Hold hold = new Hold(options, asOf.readPoint);
        try (Table table = hold.table()) {
            hold.taken = hold.now();
            hold.recorded = hold.record(hold.taken);
            table.put(new Put(hold.row()).addColumn(FAMILY, VALUE, hold.recorded).setDurability(Durability.SYNC_WAL));
        } catch (TableNotFoundException e) {
            throw new IllegalArgumentException("Option hold = true: there is no table " + options.stateTable
                    + " to take the hold in. Where Lowtide never ran nothing removes history, and no hold is needed;"
                    + " else name its table in the option stateTable.", e);
        }
        try {
            hold.refuseIntended();
            asOf.checkMark(options, "");
        } catch (IOException | RuntimeException e) {
            hold.release();
            throw e;
        }
        long pause = Math.max(1, Math.min(LASTING_MILLIS, options.holdMaxAgeMillis) / 3);
        hold.renewal = RENEWALS.scheduleAtFixedRate(hold::renew, pause, pause, TimeUnit.MILLISECONDS);
        Endings.with(reader, hold);
    }

    /**
     * Fails where a run of history GC is about to apply a mark above the read point. Of a run that announced it long
     * ago and has not applied it the claim is taken, as {@code lowtide.store.state.StateStore.overtake} has it: that
     * run can then no longer apply it. It may have done so just before, so the applied mark is to be read after
     * this.
     */
    void refuseIntended() throws IOException {
        try (Table table = table()) {
            byte[] row = Records.historyRow(options.table);
            Result known = table.get(new Get(row).addColumn(FAMILY, MARK).addColumn(FAMILY, INTENDED));
            byte[] claim = known.getValue(FAMILY, INTENDED);
            JsonNode announced = json(claim);
            Announced mark = new Announced(announced.path("mark").asLong(),
                    json(known.getValue(FAMILY, MARK)).path("mark").asLong(), announced.path("at").asLong());
            if (!mark.isInTheWayOf(readPoint)) {
                return;
            }
            long now = now();
            if (mark.isDead(readPoint, now) && overtakes(table, row, claim, announced, mark.applied, now)) {
                return;
            }
            throw new IllegalArgumentException("A run of history_gc is about to remove the history of " + options.table
                    + " before " + mark.intended + ", so a hold at " + readPoint + " comes too late. Read at "
                    + mark.intended + " or later, or try again after it (if it was killed: from "
                    + Instant.ofEpochMilli(mark.ends()) + " on).");
        }
    }

    /** The mark that a run announced at a time, and the one that was applied last. */
    record Announced(long intended, long applied, long at) {
        boolean isInTheWayOf(long timestamp) {
            return timestamp < intended;
        }

        /** Whether its run must be taken for dead, and a hold of this timestamp gains anything by that. */
        boolean isDead(long timestamp, long now) {
            return applied < intended && timestamp >= applied && now >= ends();
        }

        long ends() {
            return at + ANNOUNCED_MILLIS;
        }
    }

    private boolean overtakes(Table table, byte[] row, byte[] claim, JsonNode announced, long applied, long now)
            throws IOException {
        ObjectNode mine = new ObjectMapper().createObjectNode();
        mine.put("at", now);
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
        try (Table table = table()) {
            byte[] longer = record(now());
            Put put = new Put(row()).addColumn(FAMILY, VALUE, longer).setDurability(Durability.SYNC_WAL);
            if (table.checkAndMutate(CheckAndMutate.newBuilder(row())
                    .ifMatches(FAMILY, VALUE, CompareOperator.EQUAL, recorded).build(put)).isSuccess()) {
                recorded = longer;
                return;
            }
            // Nobody else renews it: what stands there is this renewal, which HBase's client repeated because its
            // answer was lost, or an earlier one of which no answer came at all. Nothing: it expired, or was released
            // by hand.
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

    /**
     * The time by the clock of the state table's server, as {@code StateStore.server_time} asks for it; a test's own.
     */
    long now() throws IOException {
        byte[] row = Bytes.toBytes("now/" + UUID.randomUUID());
        try (Table table = table()) {
            table.put(new Put(row).addColumn(FAMILY, VALUE, Bytes.toBytes("{}")));
            try {
                Cell written = table.get(new Get(row).addColumn(FAMILY, VALUE)).getColumnLatestCell(FAMILY, VALUE);
                if (written == null) {
                    throw new IOException("row " + Bytes.toString(row) + " of " + options.stateTable + ", which was"
                            + " just written for its time, is gone. Look for what deletes rows there, and read again");
                }
                return written.getTimestamp();
            } finally {
                table.delete(new Delete(row));
            }
        }
    }

    private byte[] row() {
        return row(options.table, id);
    }

    static byte[] row(String table, String id) {
        return Bytes.toBytes("hold/" + table + "/" + id);
    }

    private byte[] record(long now) {
        long expires = expires(now, taken, options.holdMaxAgeMillis);
        return record(options.table, id, readPoint, options.holdOwner, taken, expires);
    }

    /**
     * Until when a hold lasts that is taken or renewed now; a read that lasts longer fails at its end if the mark has
     * passed it.
     */
    static long expires(long now, long taken, long longest) {
        return Math.min(now + LASTING_MILLIS, longest > Long.MAX_VALUE - taken ? Long.MAX_VALUE : taken + longest);
    }

    /**
     * The hold as {@code lowtide.store.state} writes it, to the byte: it is let go of only where it is what was read.
     */
    static byte[] record(String table, String id, long timestamp, String owner, long taken, long expires) {
        ObjectNode node = new ObjectMapper().createObjectNode();
        node.put("expires", expires);
        node.put("id", id);
        node.put("owner", owner);
        node.put("reason", "a read with asOf");
        node.put("table", table);
        node.put("taken", taken);
        node.put("timestamp", timestamp);
        StringBuilder ascii = new StringBuilder();
        for (char each : node.toString().toCharArray()) {
            ascii.append(each < 0x80 ? String.valueOf(each) : String.format(Locale.ROOT, "\\u%04x", (int) each));
        }
        return Bytes.toBytes(ascii.toString());
    }
}
