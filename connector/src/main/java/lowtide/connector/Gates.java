package lowtide.connector;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.io.Serializable;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.plugin.PluginContext;

/**
 * The gates of the driver, by name, and the way to them: executors that are programs of their own ask by {@link
 * PacePlugin}. An executor that comes later asks as the others do, and one that is gone asks no more.
 */
public final class Gates {
    /** So often a task that waits looks whether it is still wanted. */
    private static final long LOOK_MILLIS = 500;
    private static final ConcurrentHashMap<String, Gate> GATES = new ConcurrentHashMap<>();
    /** Of an executor that is a program of its own, with the plug-in. */
    private static volatile PluginContext driver;

    /** What an executor asks the driver. */
    record Passing(String gate, long nanos) implements Serializable {
    }

    private Gates() {
    }

    /** Called by the driver: waits until a request may begin that takes the gate for so many ns; whether it had to wait. */
    public static boolean queue(String gate, long nanos) throws IOException {
        long wait = pass(gate, nanos);
        sleep(wait);
        return wait > 0;
    }

    /** Called by the driver: for how many seconds somebody has waited there. */
    public static double waited(String gate) {
        Gate known = GATES.get(gate);
        return known == null ? 0 : known.waited() / 1e9;
    }

    /** In how many ns a request may begin that takes the gate for so many; see {@link Gate#pass}. */
    static long pass(String gate, long nanos) throws IOException {
        SparkEnv environment = SparkEnv.get();
        if (environment == null || environment.executorId().equals("driver")) {
            return here(new Passing(gate, nanos));
        }
        PluginContext asked = driver;
        if (asked == null) {
            throw new IOException("this executor cannot keep to a rate: it has no way to ask the driver. Start Spark with"
                    + " spark.plugins=" + PacePlugin.class.getName() + ", as lowtide run and the DAGs do where a rate is"
                    + " set");
        }
        try {
            return (Long) asked.ask(new Passing(gate, nanos));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw (InterruptedIOException) new InterruptedIOException("Interrupted while keeping to a rate").initCause(e);
        } catch (Exception e) {
            throw new IOException("the driver does not say when to go on, at a rate: " + e.getMessage(), e);
        }
    }

    static long here(Passing passing) {
        return GATES.computeIfAbsent(passing.gate(), name -> new Gate()).pass(System.nanoTime(), passing.nanos());
    }

    static void lead(PluginContext toDriver) {
        driver = toDriver;
    }

    /** Waits so long, and no longer than its task is wanted. */
    static void sleep(long nanos) throws IOException {
        long until = System.nanoTime() + nanos;
        for (long left = nanos; left > 0; left = until - System.nanoTime()) {
            Pause.millis(Math.min(LOOK_MILLIS, left / 1_000_000 + 1), "keeping to a rate");
            TaskContext task = TaskContext.get();
            if (task != null && task.isInterrupted()) {
                throw new InterruptedIOException("the task was ended while it kept to a rate");
            }
        }
    }
}
