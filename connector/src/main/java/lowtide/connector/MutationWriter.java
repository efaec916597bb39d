package lowtide.connector;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.NoServerForRegionException;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.RowMutations;
import org.apache.hadoop.hbase.quotas.RpcThrottlingException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * Sends the mutations of one task in batches. What comes in sequence for one row without a guard becomes one atomic
 * row mutation, up to a batch. In which order different mutations of one row take effect is not defined.
 *
 * <p>What HBase cannot apply at once, because a region moves or is closed, is sent again by the writer, not by
 * HBase's client: the claims are read each time. The client would go on sending when the region is back, be it in
 * a table that was restored meanwhile. As long as some of a batch is answered, the rest is waited for.
 *
 * <p>What a quota of HBase's throttles is sent again after the time that HBase says, in smaller parts: a part that
 * is larger than what the quota lets through at once makes a debt, or in an older HBase never gets through.
 *
 * <p>A task may last longer than the token that it began with: each try goes by the connection that there is then.
 */
final class MutationWriter implements DataWriter<InternalRow> {
    private static final int BATCH = 1000;
    private static final long BATCH_BYTES = 8L << 20;
    /** Batches in a row without one acknowledged mutation, after which the rest is counted as failed untried. */
    private static final int PATIENCE = 10;
    /** Throttled, a mutation is waited for so much longer than for a region: by this factor. */
    private static final int THROTTLED_PATIENCE = 5;

    private final Connected connection;
    /** The same cluster, where an action is sent once. */
    private final Connected once;
    private final int retries;
    private final long pauseMillis;
    private final long patienceNanos;
    private final TableName name;
    private final ExecutorService requests = Executors.newFixedThreadPool(Batches.REQUESTS, Batches::thread);
    private final int[] positions;
    private final WriteReport report = new WriteReport();

    /** What is to be sent, and which mutations each action stands for. */
    private final List<Row> actions = new ArrayList<>();
    private final List<List<Mutation>> origins = new ArrayList<>();
    private int pending;
    private long pendingBytes;

    /** The row whose unguarded mutations are being gathered; null for none. */
    private byte[] groupRow;
    private Put groupPut;
    private Delete groupDelete;
    private List<Mutation> group;

    /** How many actions are sent at once at most: fewer while a quota throttles. */
    private int most = Integer.MAX_VALUE;
    private int silentBatches;
    private String lastFailure;

    /** A cluster, by the connection that is good now. */
    interface Connected {
        Connection now() throws IOException;
    }

    private final Durability durability;
    private final Claims claims;
    private final Pacer pacer;

    MutationWriter(Options options, int[] positions, Durability durability) throws IOException {
        this(options, positions, durability, () -> Connections.get(options.hbase), once(options));
    }

    MutationWriter(Options options, int[] positions, Durability durability, Connected connection, Connected once)
            throws IOException {
        this.durability = durability;
        this.claims = new Claims(options.holding);
        this.pacer = new Pacer(options);
        this.connection = connection;
        this.once = once;
        Configuration settings = connection.now().getConfiguration();
        this.retries = settings.getInt(HConstants.HBASE_CLIENT_RETRIES_NUMBER, 0);
        this.pauseMillis = settings.getLong(HConstants.HBASE_CLIENT_PAUSE, HConstants.DEFAULT_HBASE_CLIENT_PAUSE);
        this.patienceNanos = TimeUnit.MILLISECONDS
                .toNanos(settings.getLong(HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, 0));
        this.name = options.tableName();
        this.positions = positions;
    }

    private static Connected once(Options options) {
        Map<String, String> unrepeated = new TreeMap<>(options.hbase);
        unrepeated.put(HConstants.HBASE_CLIENT_RETRIES_NUMBER, "0");
        return () -> Connections.get(unrepeated);
    }

    @Override
    public void write(InternalRow record) throws IOException {
        Mutation mutation = read(record);
        try {
            Mutation.Op op = mutation.checked();
            if (op.guarded() || op == Mutation.Op.SEE_HEALED) {
                closeGroup();
                actions.add(op.guarded() ? mutation.guarded(durability) : mutation.look());
                origins.add(List.of(mutation));
            } else {
                if (!Arrays.equals(groupRow, mutation.row())) {
                    closeGroup();
                    Put put = new Put(mutation.row()).setDurability(durability);
                    Delete delete = new Delete(mutation.row()).setDurability(durability);
                    groupRow = mutation.row(); // only now: HBase takes not every row
                    groupPut = put;
                    groupDelete = delete;
                    group = new ArrayList<>();
                }
                mutation.addTo(groupPut, groupDelete);
                group.add(mutation);
            }
            pending++;
            pendingBytes += mutation.bytes();
        } catch (IllegalArgumentException e) {
            report.failed(mutation, e.getMessage());
            return;
        }
        // At a rate not even mutations of one row go together beyond what it allows.
        if (pending >= pacer.portion(BATCH) || pendingBytes >= BATCH_BYTES) {
            send();
        }
    }

    private Mutation read(InternalRow record) {
        return new Mutation(text(record, 0), text(record, 1), bytes(record, 2), bytes(record, 3), bytes(record, 4),
                number(record, 5), bytes(record, 6), number(record, 7), bytes(record, 8), bytes(record, 9),
                number(record, 10));
    }

    private boolean absent(InternalRow record, int column) {
        return positions[column] < 0 || record.isNullAt(positions[column]);
    }

    private String text(InternalRow record, int column) {
        return absent(record, column) ? null : record.getUTF8String(positions[column]).toString();
    }

    private byte[] bytes(InternalRow record, int column) {
        return absent(record, column) ? null : record.getBinary(positions[column]);
    }

    private long number(InternalRow record, int column) {
        return absent(record, column) ? Omid.NONE : record.getLong(positions[column]);
    }

    private void closeGroup() throws IOException {
        if (group != null && !group.isEmpty()) { // empty where HBase's client takes nothing of what came for the row
            if (groupDelete.isEmpty()) {
                actions.add(groupPut);
            } else if (groupPut.isEmpty()) {
                actions.add(groupDelete);
            } else {
                actions.add(RowMutations.of(List.of(groupPut, groupDelete)));
            }
            origins.add(group);
        }
        group = null;
        groupRow = null;
    }

    private void send() throws IOException {
        closeGroup();
        if (actions.isEmpty()) {
            return;
        }
        Object[] results = new Object[actions.size()];
        String failure = null;
        if (silentBatches >= PATIENCE) {
            failure = "not tried after " + PATIENCE + " batches without an answer: " + lastFailure;
        } else {
            failure = sent(results);
        }
        boolean answered = false;
        for (int i = 0; i < results.length; i++) {
            answered |= account(origins.get(i), results[i], failure);
        }
        silentBatches = answered ? 0 : silentBatches + 1;
        lastFailure = failure == null ? lastFailure : failure;
        actions.clear();
        origins.clear();
        pending = 0;
        pendingBytes = 0;
    }

    /** Sends the actions, as often as HBase's client would since the last answer; what went wrong, or null. */
    private String sent(Object[] results) throws IOException {
        List<Integer> open = new ArrayList<>();
        for (int i = 0; i < results.length; i++) {
            open.add(i);
        }
        long answered = System.nanoTime();
        for (int tried = 0;; tried++) {
            List<Integer> part = List.copyOf(open.subList(0, Math.min(most, open.size())));
            // Before the claims are read, which must stand when the part is sent.
            answered += pacer.beforeWrite(part.stream().mapToLong(i -> origins.get(i).size()).sum());
            Connection to;
            Batches.Permit permit;
            try {
                to = once.now();
                permit = claims.read(connection.now());
            } catch (InterruptedIOException e) {
                throw e;
            } catch (IOException e) {
                return "not tried: the claim cannot be read: " + Batches.firstLine(e);
            }
            String failure = sent(part, results, to, permit);
            int before = open.size();
            open.removeIf(i -> !worthAnother(results[i]));
            if (open.isEmpty() || claims.lost()) {
                return failure;
            }
            int through = before - open.size();
            if (through > 0) {
                answered = System.nanoTime();
                tried = 0;
            }
            RpcThrottlingException throttled = throttled(part, results);
            long silent = System.nanoTime() - answered;
            if (throttled != null) {
                most = Math.max(1, through > 0 ? through : part.size() / 2);
                tried = 0; // what waits for its turn was not tried
                long wait = Math.max(pauseMillis, throttled.getWaitInterval());
                if (silent + TimeUnit.MILLISECONDS.toNanos(wait) > THROTTLED_PATIENCE * patienceNanos) {
                    silentBatches = PATIENCE; // what is left of the task would wait as long
                    open.forEach(i -> results[i] = null);
                    return throttledFor(throttled, silent);
                }
                Pause.millis(wait, "writing");
            } else if (through == 0 && (tried >= retries || silent > patienceNanos)) {
                return failure;
            } else {
                if (part.size() < before) {
                    most = 2 * part.size(); // nothing held it back
                }
                if (through < part.size()) {
                    pause(tried);
                }
            }
        }
    }

    private String throttledFor(RpcThrottlingException throttled, long silentNanos) {
        String what = throttled.getMessage().lines().findFirst().orElse("").replaceFirst(".*Exception: ", "");
        return "a quota throttles writes to " + name + " (" + what + "), for longer than a task waits; it had"
                + " none through for " + TimeUnit.NANOSECONDS.toSeconds(silentNanos) + " s. In HBase's shell list_quotas"
                + " shows those of the table, its namespace and the jobs' user; raise it (set_quota), or run when others"
                + " write less";
    }

    /** The throttling of that one of these actions that has to wait least; null where none was throttled. */
    private static RpcThrottlingException throttled(List<Integer> part, Object[] results) {
        RpcThrottlingException least = null;
        for (int i : part) {
            if (results[i] instanceof RpcThrottlingException found
                    && (least == null || found.getWaitInterval() < least.getWaitInterval())) {
                least = found;
            }
        }
        return least;
    }

    /** Sends those of the actions once; what went wrong, or null. */
    private String sent(List<Integer> open, Object[] results, Connection to, Batches.Permit permit)
            throws IOException {
        Object[] answers = new Object[open.size()];
        List<Row> wanted = open.stream().map(actions::get).toList();
        String failure = new Batches(requests, to, name, wanted, answers, permit).await();
        for (int i = 0; i < answers.length; i++) {
            results[open.get(i)] = answers[i];
        }
        return failure;
    }

    /** Whether HBase's client would send again what ended so: its region may be elsewhere, or nowhere for a moment. */
    private static boolean worthAnother(Object result) {
        return result == null || result instanceof NoServerForRegionException
                || result instanceof IOException && !(result instanceof DoNotRetryIOException);
    }

    private void pause(int tried) throws IOException {
        Pause.millis(pauseMillis * HConstants.RETRY_BACKOFF[Math.min(tried, HConstants.RETRY_BACKOFF.length - 1)],
                "writing");
    }

    /** Counts an action's mutations; true if HBase answered. */
    private boolean account(List<Mutation> mutations, Object result, String failure) {
        if (result == null || result instanceof Throwable) {
            String text = result == null ? failure : Batches.firstLine((Throwable) result);
            mutations.forEach(mutation -> report.failed(mutation, text));
            return false;
        }
        boolean refused = result instanceof CheckAndMutateResult checked ? !checked.isSuccess()
                : mutations.get(0).checked() == Mutation.Op.SEE_HEALED && !mutations.get(0).isHealed((Result) result);
        if (refused) {
            mutations.forEach(report::refused);
        } else {
            mutations.forEach(report::done);
        }
        return true;
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        send();
        return report;
    }

    @Override
    public void abort() {
        // What was sent stays: every mutation is right by itself.
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return new CustomTaskMetric[] {
            new Metrics.Value(Metrics.MutationsWritten.NAME, report.done()),
            new Metrics.Value(Metrics.MutationsRefused.NAME, report.refused()),
            new Metrics.Value(Metrics.BytesWritten.NAME, report.bytes())
        };
    }

    @Override
    public void close() {
        requests.shutdownNow();
    }
}
