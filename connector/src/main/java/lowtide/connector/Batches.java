package lowtide.connector;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Table;

/** Actions on rows of one table, sent several requests at a time, each with its result. */
final class Batches {
    /**
     * A server applies guarded mutations one by one, each with a sync of its log; several requests at a time share
     * the syncs. Reads of a request are done one by one too.
     */
    static final int REQUESTS = 8;
    private static final int LEAST_OF_A_REQUEST = 20;

    /** Asked right before a request is sent: null, or why it must not be sent. */
    @FunctionalInterface
    interface Permit {
        String refusal();
    }

    static final Permit ALWAYS = () -> null;

    /** Requests under way. */
    private final List<Future<String>> answers = new ArrayList<>();

    /**
     * Sends all actions that are permitted and does not wait.
     *
     * @param results one a action; filled in by the time {@link #await} returns, as {@link Table#batch} does it: what
     *        the action gave, a {@link Throwable}, or null
     */
    Batches(ExecutorService threads, Connection connection, TableName name, List<? extends Row> actions,
            Object[] results, Permit permit) {
        int slow = (int) actions.stream().filter(a -> a instanceof CheckAndMutate || a instanceof Get).count();
        int parts = Math.max(1, Math.min(REQUESTS, slow / LEAST_OF_A_REQUEST));
        for (int part = 0; part < parts; part++) {
            int from = part * results.length / parts;
            int to = (part + 1) * results.length / parts;
            answers.add(threads.submit(
                    () -> request(connection, name, actions.subList(from, to), results, from, permit)));
        }
    }

    /** Waits for all results; what went wrong first, or null. */
    String await() throws IOException {
        String failure = null;
        try {
            for (Future<String> answer : answers) {
                String text = answer.get();
                failure = failure == null ? text : failure;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw (InterruptedIOException) new InterruptedIOException("Interrupted while writing").initCause(e);
        } catch (ExecutionException e) {
            throw new IOException(e.getCause());
        }
        return failure;
    }

    private static String request(Connection connection, TableName name, List<? extends Row> actions, Object[] results,
            int from, Permit permit) {
        Object[] part = new Object[actions.size()];
        try (Table table = connection.getTable(name)) {
            String refusal = permit.refusal();
            if (refusal != null) {
                return refusal;
            }
            table.batch(actions, part);
            return null;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return firstLine(e);
        } catch (IOException | RuntimeException e) {
            return firstLine(e);
        } finally {
            System.arraycopy(part, 0, results, from, part.length);
        }
    }

    /** A daemon, so that it keeps no JVM from ending. */
    static Thread thread(Runnable work) {
        Thread thread = new Thread(work, "lowtide-writer");
        thread.setDaemon(true);
        return thread;
    }

    /** A failure in one line of at most 500 characters, its kind first. */
    static String firstLine(Throwable failure) {
        String message = failure.getMessage();
        String line = message == null ? "" : message.lines().findFirst().orElse("");
        return failure.getClass().getSimpleName() + ": " + (line.length() > 500 ? line.substring(0, 500) : line);
    }
}
