import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.omid.transaction.HBaseOmidClientConfiguration;
import org.apache.omid.transaction.HBaseTransactionManager;
import org.apache.omid.transaction.RollbackException;
import org.apache.omid.transaction.TTable;
import org.apache.omid.transaction.Transaction;
import org.apache.omid.transaction.TransactionException;

/**
 * Clients at work: threads that each carry out one Omid transaction after the other, as fast as they are answered, until the
 * standard input ends. Every other transaction reads a random row; the others read one and write a column of it. One that the
 * oracle refuses counts, with the time that it took. A line a transaction: kind, when it began (ms), how long it took (ns).
 *
 * <p>Arguments: the oracle's address, the table, its rows, threads, the file of the lines.
 */
public final class Foreground {
    private static final byte[] FAMILY = Bytes.toBytes("f");

    private Foreground() {
    }

    public static void main(String[] args) throws Exception {
        String table = args[1];
        long rows = Long.parseLong(args[2]);
        Configuration configuration = HBaseConfiguration.create();
        HBaseOmidClientConfiguration omid = new HBaseOmidClientConfiguration();
        omid.setConnectionString(args[0]);
        omid.setHBaseConfiguration(configuration);
        AtomicBoolean over = new AtomicBoolean();
        try (PrintStream out = new PrintStream(args[4], StandardCharsets.UTF_8);
                Connection connection = ConnectionFactory.createConnection(configuration);
                HBaseTransactionManager manager =
                        (HBaseTransactionManager) HBaseTransactionManager.newInstance(omid)) {
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < Integer.parseInt(args[3]); number++) {
                Random random = new Random(number);
                Thread thread = new Thread(() -> {
                    try (TTable rowsOf = new TTable(connection, Bytes.toBytes(table))) {
                        for (int turn = 0; !over.get(); turn++) {
                            work(manager, rowsOf, random, rows, turn % 2 == 1, out);
                        }
                    } catch (Exception e) {
                        e.printStackTrace();
                        System.exit(1);
                    }
                });
                thread.start();
                threads.add(thread);
            }
            while (System.in.read() >= 0) {
                // Until whoever started it is through, or gone.
            }
            over.set(true);
            for (Thread thread : threads) {
                thread.join();
            }
        }
        System.exit(0);
    }

    private static void work(HBaseTransactionManager manager, TTable table, Random random, long rows, boolean writes,
            PrintStream out) throws Exception {
        byte[] row = Bytes.toBytes(String.format("user%012d", (long) (random.nextDouble() * rows)));
        long at = System.currentTimeMillis();
        long began = System.nanoTime();
        Transaction transaction = manager.begin();
        try {
            table.get(transaction, new Get(row).addFamily(FAMILY));
            if (writes) {
                byte[] column = Bytes.toBytes(String.format("column%03d", random.nextInt(5)));
                table.put(transaction, new Put(row).addColumn(FAMILY, column, Bytes.toBytes(at)));
            }
            manager.commit(transaction);
        } catch (RollbackException | TransactionException e) {
            // Refused: it has taken the client's time all the same.
        }
        long took = System.nanoTime() - began;
        synchronized (out) {
            out.println((writes ? "write " : "read ") + at + " " + took);
            out.flush(); // whoever started it waits for the first
        }
    }
}
