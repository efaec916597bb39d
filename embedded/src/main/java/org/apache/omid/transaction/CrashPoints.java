package org.apache.omid.transaction;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.ExecutionException;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.omid.committable.CommitTable;
import org.apache.omid.tso.client.CellId;
import org.apache.omid.tso.client.ConnectionException;
import org.apache.omid.tso.client.ForwardingTSOFuture;
import org.apache.omid.tso.client.ServiceUnavailableException;
import org.apache.omid.tso.client.TSOFuture;
import org.apache.omid.tso.client.TSOProtocol;
import org.apache.phoenix.thirdparty.com.google.common.util.concurrent.Futures;
import org.apache.phoenix.thirdparty.com.google.common.util.concurrent.ListenableFuture;
import org.apache.phoenix.thirdparty.com.google.common.util.concurrent.MoreExecutors;

/**
 * Omid's own client with trap doors: a transaction that was armed falls through at one point of its commit.
 *
 * <p>Everything between the trap doors is Omid's code. The points and their numbers:
 *
 * <ul>
 *   <li>1: all cells are written; the client dies before it asks for the commit
 *   <li>2: the oracle refused the commit; the client dies in the clean-up, half of what it wrote to its first table is gone
 *   <li>4: the commit entry is written; the client dies before the first shadow cell
 *   <li>5: half of the shadow cells are written; the client dies
 *   <li>6: all shadow cells are written; the commit entry is not deleted
 *   <li>7: the oracle's answer is lost; the client finds its commit entry, completes, and leaves the entry
 *   <li>8: the oracle is lost before it decides; the client puts an invalidation mark and rolls back
 *   <li>10: the asynchronous committer fails half-way through the shadow cells and deletes the commit entry all the same
 * </ul>
 *
 * Points before the commit (0, 9, and 1 where the cells are known) need no trap door: whoever drives the transaction just walks away.
 *
 * <p>In Omid's package because {@code HBaseTransactionManager.Builder.postCommitter} is package-private.
 */
public final class CrashPoints {

    /** Thrown to leave a transaction behind as a dead client would; an Error, so that Omid does not handle it. */
    public static final class Crash extends Error {
        private static final long serialVersionUID = 1L;

        Crash() {
            super("crashed", null, false, false);
        }
    }

    private static final class Trap {
        final int point;
        final Runnable death;
        /** The tables that were written to, by name. */
        final Set<String> written = new ConcurrentSkipListSet<>();
        volatile boolean sprung;

        Trap(int point, Runnable death) {
            this.point = point;
            this.death = death;
        }
    }

    private static final int NONE = -1;

    private final Connection connection;
    private final HBaseTransactionManager manager;
    private final Map<Long, Trap> traps = new ConcurrentHashMap<>();
    /** Of every transaction that committed, and came to its shadow cells. */
    private final Map<Long, Long> commits = new ConcurrentHashMap<>();

    public CrashPoints(
            HBaseOmidClientConfiguration configuration,
            Connection connection,
            TSOProtocol oracle,
            CommitTable.Client commitTable)
            throws IOException, InterruptedException {
        this.connection = connection;
        PostCommitActions sync = new HBaseSyncPostCommitter(configuration.getMetrics(), commitTable, connection);
        this.manager = HBaseTransactionManager.builder(configuration)
                .tsoClient(oracle(oracle))
                .commitTableClient(commitTable)
                .postCommitter(new Committer(sync))
                .build();
    }

    /** The transaction manager with the trap doors. */
    public HBaseTransactionManager manager() {
        return manager;
    }

    /**
     * Arms a transaction.
     *
     * @param death runs when the point is reached where a client dies: it ends the process or, by returning, only leaves
     *     the transaction behind
     */
    public void arm(long start, int point, Runnable death) {
        traps.put(start, new Trap(point, death));
    }

    /** Disarms a transaction that is over; says whether it had reached its point. */
    public boolean disarm(long start) {
        Trap trap = traps.remove(start);
        return trap != null && trap.sprung;
    }

    /** The commit timestamp of a transaction that committed; null: it did not, or nobody told its client. */
    public Long committed(long start) {
        return commits.get(start);
    }

    /** The table as one transaction sees it: every put is recorded before it is sent, and point 2 is guarded. */
    public Table table(Table table, long start, java.util.function.Consumer<Put> recorder) {
        InvocationHandler handler = (proxy, method, arguments) -> {
            if (method.getName().equals("batch") && arguments.length == 2) {
                @SuppressWarnings("unchecked")
                List<? extends Row> rows = (List<? extends Row>) arguments[0];
                rows.stream().filter(Put.class::isInstance).map(Put.class::cast).forEach(recorder);
                if (point(start) == 2 && !rows.isEmpty()) {
                    if (!(rows.get(0) instanceof Delete)) {
                        traps.get(start).written.add(table.getName().getNameAsString());
                    } else if (!traps.get(start).written.iterator().next().equals(table.getName().getNameAsString())) {
                        return null; // it dies before it comes to this one
                    } else {
                        halve(table, rows);
                        die(start);
                    }
                }
            }
            return call(method, table, arguments);
        };
        return (Table) Proxy.newProxyInstance(Table.class.getClassLoader(), new Class<?>[] {Table.class}, handler);
    }

    /**
     * Carries out the first half of a clean-up, or one more, in key order: Omid's own order goes by the hashes of timestamps, and a script
     * is to leave the same whenever it is carried out.
     */
    private static void halve(Table table, List<? extends Row> rows) throws IOException, InterruptedException {
        List<Row> sorted = new ArrayList<>(rows);
        sorted.sort(Comparator.comparing(CrashPoints::column));
        List<Row> half = sorted.subList(0, (sorted.size() + 1) / 2);
        table.batch(half, new Object[half.size()]);
    }

    private static String column(Row delete) {
        return Bytes.toStringBinary(delete.getRow())
                + ((Delete) delete).getFamilyCellMap().values().stream()
                        .flatMap(List::stream)
                        .map(cell -> Bytes.toStringBinary(CellUtil.cloneFamily(cell))
                                + ":"
                                + Bytes.toStringBinary(CellUtil.cloneQualifier(cell)))
                        .sorted()
                        .toList();
    }

    // --- inside -----------------------------------------------------------------------------------------------------

    private int point(long start) {
        Trap trap = traps.get(start);
        return trap == null ? NONE : trap.point;
    }

    private void spring(long start) {
        traps.get(start).sprung = true;
    }

    private void die(long start) {
        spring(start);
        traps.get(start).death.run();
        throw new Crash();
    }

    private static Object call(Method method, Object target, Object[] arguments) throws Throwable {
        try {
            return method.invoke(target, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private TSOProtocol oracle(TSOProtocol oracle) {
        InvocationHandler handler = (proxy, method, arguments) -> {
            int point = method.getName().equals("commit") ? point((Long) arguments[0]) : NONE;
            if (point == 1) {
                die((Long) arguments[0]);
            }
            if (point == 8) {
                spring((Long) arguments[0]);
                return failed(new ConnectionException());
            }
            Object answer = call(method, oracle, arguments);
            if (point == 7 && committed((TSOFuture<?>) answer)) {
                spring((Long) arguments[0]);
                return failed(new ServiceUnavailableException("the oracle's answer is lost"));
            }
            return answer;
        };
        return (TSOProtocol)
                Proxy.newProxyInstance(TSOProtocol.class.getClassLoader(), new Class<?>[] {TSOProtocol.class}, handler);
    }

    private static boolean committed(TSOFuture<?> answer) throws InterruptedException {
        try {
            answer.get();
            return true;
        } catch (ExecutionException e) {
            return false;
        }
    }

    private static TSOFuture<Long> failed(Exception cause) {
        return new ForwardingTSOFuture<>(Futures.immediateFailedFuture(cause));
    }

    private final class Committer implements PostCommitActions {

        private final PostCommitActions sync;
        private final PostCommitActions async;

        Committer(PostCommitActions sync) {
            this.sync = sync;
            // The real asynchronous committer, over one that fails half-way. In the caller's thread: only the order matters.
            this.async = new HBaseAsyncPostCommitter(
                    new PostCommitActions() {
                        @Override
                        public ListenableFuture<Void> updateShadowCells(AbstractTransaction<? extends CellId> tx) {
                            writeHalf(tx);
                            return Futures.immediateFailedFuture(new IOException("the shadow cells cannot be written"));
                        }

                        @Override
                        public ListenableFuture<Void> removeCommitTableEntry(AbstractTransaction<? extends CellId> tx) {
                            return sync.removeCommitTableEntry(tx);
                        }
                    },
                    MoreExecutors.newDirectExecutorService());
        }

        @Override
        public ListenableFuture<Void> updateShadowCells(AbstractTransaction<? extends CellId> tx) {
            long start = tx.getStartTimestamp();
            commits.put(start, tx.getCommitTimestamp());
            switch (point(start)) {
                case 4:
                    die(start);
                    throw new AssertionError();
                case 5:
                    writeHalf(tx);
                    die(start);
                    throw new AssertionError();
                case 10:
                    spring(start);
                    return async.updateShadowCells(tx);
                default:
                    return sync.updateShadowCells(tx);
            }
        }

        @Override
        public ListenableFuture<Void> removeCommitTableEntry(AbstractTransaction<? extends CellId> tx) {
            long start = tx.getStartTimestamp();
            switch (point(start)) {
                case 6:
                    die(start); // Omid swallows what is thrown here: the commit goes well for its caller
                    throw new AssertionError();
                case 10:
                    return async.removeCommitTableEntry(tx);
                default:
                    return sync.removeCommitTableEntry(tx);
            }
        }

        /** The shadow cells of the first half of the write set, in key order; at least one. */
        private void writeHalf(AbstractTransaction<? extends CellId> transaction) {
            HBaseTransaction tx = HBaseTransactionManager.enforceHBaseTransactionAsParam(transaction);
            List<HBaseCellId> cells = new ArrayList<>(tx.getWriteSet());
            cells.addAll(tx.getConflictFreeWriteSet());
            cells.sort(Comparator.comparing(HBaseCellId::toString));
            for (HBaseCellId cell : cells.subList(0, Math.max(1, cells.size() / 2))) {
                Put put = new Put(cell.getRow())
                        .addColumn(
                                cell.getFamily(),
                                CellUtils.addShadowCellSuffixPrefix(cell.getQualifier()),
                                cell.getTimestamp(),
                                Bytes.toBytes(tx.getCommitTimestamp()));
                try (Table table = connection.getTable(cell.getTable().getHTable().getName())) {
                    table.put(put);
                } catch (IOException e) {
                    throw new IllegalStateException("HBase refuses a shadow cell of " + cell, e);
                }
            }
        }
    }
}
