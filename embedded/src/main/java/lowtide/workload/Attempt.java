package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.omid.transaction.CrashPoints;
import org.apache.omid.transaction.HBaseTransaction;
import org.apache.omid.transaction.RollbackException;
import org.apache.omid.transaction.TTable;
import org.apache.omid.transaction.Transaction.Status;
import org.apache.omid.transaction.TransactionException;
import org.apache.omid.tso.client.AbortException;

/**
 * One transaction of a script, carried out step by step through Omid's client, with its trap armed and its log written.
 *
 * <p>Events: {@code begin} (T, id), {@code cells} (about to be sent), {@code die} (the process ends at a crash point),
 * {@code end} (outcome, commit timestamp, crash point reached, reason of an abort). A transaction without {@code end} is in
 * doubt.
 */
final class Attempt {

    /** A crash point that needs no trap: the driver walks away, and marks the transaction as a later reader would. */
    private static final int INVALIDATED = 9;

    private static final Object DEATH = new Object();

    private final Store store;
    private final EventLog log;
    private final JsonObject script;
    private final JsonArray steps;
    private final String suffix;
    private final int crash;
    private final boolean halt;
    private final Map<String, TTable> tables = new HashMap<>();

    private HBaseTransaction transaction;
    private int next;
    private boolean over;
    private Outcome outcome = Outcome.FAILED;

    enum Outcome {
        COMMITTED,
        READ_ONLY,
        ROLLED_BACK,
        CONFLICT,
        WATERMARK,
        ABANDONED,
        IN_DOUBT,
        FAILED
    }

    /** @param suffix is added to every value, so that a script can be run again and again and each value is told apart */
    Attempt(Store store, EventLog log, JsonObject script, String suffix) {
        this.store = store;
        this.log = log;
        this.script = script;
        this.suffix = suffix;
        this.steps = script.getAsJsonArray("steps");
        this.crash = script.has("crash") ? script.get("crash").getAsInt() : -1;
        this.halt = script.has("halt") && script.get("halt").getAsBoolean();
    }

    Outcome outcome() {
        return outcome;
    }

    /** The next step; steps after the end of the transaction do nothing. */
    void step() throws Exception {
        if (over || next >= steps.size()) {
            return;
        }
        if (transaction == null) {
            begin();
        }
        try {
            perform(steps.get(next++).getAsJsonObject());
        } catch (CrashPoints.Crash e) {
            end(committed() ? Outcome.COMMITTED : Outcome.ABANDONED, "");
        } catch (RollbackException e) {
            rolledBack(e);
        } catch (TransactionException e) {
            // Whether it committed is not known: no end is logged, the settling reads it from the store.
            over = true;
            outcome = Outcome.IN_DOUBT;
        } catch (IOException e) {
            end(Outcome.ABANDONED, "HBase: " + e);
        }
    }

    private void begin() throws Exception {
        transaction = (HBaseTransaction) store.crashPoints().manager().begin();
        log.write(event("begin").with("id", script.get("id").getAsString()).json);
        if (crash >= 0) {
            store.crashPoints().arm(start(), crash, this::die);
        }
    }

    private void perform(JsonObject step) throws Exception {
        switch (step.get("do").getAsString()) {
            case "put":
                byte[] value = Json.bytes(new JsonPrimitive(step.get("value").getAsString() + suffix));
                table(step).put(transaction, new Put(row(step)).addColumn(family(step), qualifier(step), value));
                break;
            case "delete":
                table(step).delete(transaction, new Delete(row(step)).addColumns(family(step), qualifier(step)));
                break;
            case "delete_family":
                table(step).delete(transaction, new Delete(row(step)).addFamily(family(step)));
                break;
            case "delete_row":
                table(step).delete(transaction, new Delete(row(step)));
                break;
            case "read":
                table(step).get(transaction, new Get(row(step)));
                break;
            case "checkpoint":
                transaction.checkpoint();
                break;
            case "pause":
                Thread.sleep(step.get("ms").getAsLong());
                break;
            case "commit":
                store.crashPoints().manager().commit(transaction);
                end(transaction.getStatus() == Status.COMMITTED_RO ? Outcome.READ_ONLY : Outcome.COMMITTED, "");
                break;
            case "rollback":
                store.crashPoints().manager().rollback(transaction);
                end(Outcome.ROLLED_BACK, "");
                break;
            case "abandon":
                abandon();
                break;
            default:
                throw new IllegalArgumentException("a script has the unknown step " + step);
        }
    }

    private void abandon() throws Exception {
        if (crash == INVALIDATED) {
            store.commitTable.tryInvalidateTransaction(start()).get();
        }
        die();
        over = true;
        outcome = Outcome.ABANDONED;
        store.crashPoints().disarm(start());
        log.write(event("end").with("outcome", "abandoned").with("crash", crash).json);
    }

    /** A crash point was reached: either this process ends here, or only this transaction is left behind. */
    private void die() {
        if (halt) {
            synchronized (DEATH) { // a process dies once, also where two of its threads reach their points together
                log.write(event("die").with("crash", crash).json);
                Runtime.getRuntime().halt(137);
            }
        }
    }

    private void rolledBack(RollbackException e) throws Exception {
        if (!(e.getCause() instanceof AbortException)) {
            end(Outcome.ROLLED_BACK, "the oracle was lost");
        } else if (start() <= store.watermark()) {
            end(Outcome.WATERMARK, "the low watermark passed it");
        } else {
            end(Outcome.CONFLICT, "a conflict");
        }
    }

    private void end(Outcome reached, String reason) throws Exception {
        over = true;
        outcome = reached;
        Event event = event("end").with("outcome", reached.name().toLowerCase(Locale.ROOT).replace('_', ' '));
        event.json.add("commit", committed() ? new JsonPrimitive(transaction.getCommitTimestamp()) : JsonNull.INSTANCE);
        if (store.crashPoints().disarm(start())) {
            event.with("crash", crash);
        }
        if (!reason.isEmpty()) {
            event.with("reason", reason);
        }
        log.write(event.json);
    }

    private boolean committed() {
        return transaction.getStatus() == Status.COMMITTED;
    }

    private long start() {
        return transaction.getStartTimestamp();
    }

    private TTable table(JsonObject step) throws Exception {
        String name = step.get("table").getAsString();
        TTable table = tables.get(name);
        if (table == null) {
            table = new TTable(
                    store.crashPoints().table(store.table(name), start(), put -> record(name, put)),
                    script.has("conflict_free") && script.get("conflict_free").getAsBoolean());
            table.setAutoFlush(!(script.has("buffered") && script.get("buffered").getAsBoolean()));
            tables.put(name, table);
        }
        return table;
    }

    private void record(String table, Put put) {
        JsonArray cells = new JsonArray();
        for (Cell cell : put.getFamilyCellMap().values().stream().flatMap(java.util.List::stream).toList()) {
            boolean empty = cell.getValueLength() == 0;
            String kind = !empty ? "put" : cell.getQualifierLength() == 0 ? "delete_family" : "delete";
            cells.add(Json.array(
                    table,
                    CellUtil.cloneRow(cell),
                    CellUtil.cloneFamily(cell),
                    CellUtil.cloneQualifier(cell),
                    cell.getTimestamp() - start(),
                    kind,
                    CellUtil.cloneValue(cell)));
        }
        log.write(event("cells").with("cells", cells).json);
    }

    private static byte[] row(JsonObject step) {
        return Json.bytes(step, "row");
    }

    private static byte[] family(JsonObject step) {
        return Json.bytes(step, "family");
    }

    private static byte[] qualifier(JsonObject step) {
        return Json.bytes(step, "qualifier");
    }

    private Event event(String kind) {
        return new Event().with("event", kind).with("start", start());
    }

    private static final class Event {
        final JsonObject json = new JsonObject();

        Event with(String name, Object value) {
            json.add(name, Json.element(value));
            return this;
        }
    }
}
