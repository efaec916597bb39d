package lowtide.store;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.master.HMaster;
import sun.misc.Signal;

/**
 * HBase's master, region servers and ZooKeeper in one process, which a SIGTERM ends in the right order; where the
 * configuration says that HBase is distributed, the master alone, which ends its region servers before itself.
 *
 * <p>HBase's own hooks end the servers in any order. When ZooKeeper goes first, the region servers wait for it until their
 * session is over, and the next start waits as long for the sessions that were left behind. A shutdown through the master
 * ends the region servers, then the master, then ZooKeeper.
 */
public final class Database {

    private Database() {}

    public static void main(String[] args) throws Exception {
        Signal.handle(new Signal("TERM"), signal -> new Thread(Database::stop, "stop").start());
        String granted = HBaseConfiguration.create().get(Grants.GRANTED);
        if (granted != null) {
            Thread grants = new Thread(() -> Grants.give(granted.split(",")), "grants");
            grants.setDaemon(true);
            grants.start();
        }
        HMaster.main(args);
        // All servers have ended; what is left are threads that would keep the process.
        Runtime.getRuntime().halt(0);
    }

    private static void stop() {
        Configuration configuration = HBaseConfiguration.create();
        configuration.setInt(HConstants.HBASE_CLIENT_RETRIES_NUMBER, 1);
        configuration.setInt(HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, 5_000);
        configuration.setInt("zookeeper.recovery.retry", 1);
        try (Connection connection = ConnectionFactory.createConnection(configuration);
                Admin admin = connection.getAdmin()) {
            admin.shutdown();
        } catch (Exception e) {
            // There is no master to ask: it has not come up, or is gone already. HBase's own hooks end what runs.
            System.exit(1);
        }
    }
}
