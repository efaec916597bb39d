package lowtide.connector;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;

/** One HBase connection per JVM and map of options. Connections live as long as the JVM: never close one. */
final class Connections {
    private static final Map<Map<String, String>, Connection> OPEN = new HashMap<>();
    /**
     * What bounds the time until an unreachable cluster or region becomes an error: HBase's own defaults retry for
     * many minutes. An option of the same name wins.
     */
    private static final Map<String, String> BOUNDS = Map.of(
            HConstants.HBASE_CLIENT_RETRIES_NUMBER, "10",
            HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, "120000",
            HConstants.HBASE_CLIENT_META_OPERATION_TIMEOUT, "60000",
            "zookeeper.recovery.retry", "3");

    private Connections() {
    }

    /** The connection for these options; opened if there is none, or if the one there is was closed. */
    static Connection get(Map<String, String> options) throws IOException {
        synchronized (OPEN) {
            Connection connection = OPEN.get(options);
            if (connection == null || connection.isClosed() || connection.isAborted()) {
                connection = ConnectionFactory.createConnection(configuration(options));
                OPEN.put(new TreeMap<>(options), connection);
            }
            return connection;
        }
    }

    /** HBase's configuration with these options over it. */
    static Configuration configuration(Map<String, String> options) {
        Configuration configuration = HBaseConfiguration.create();
        BOUNDS.forEach(configuration::set);
        options.forEach(configuration::set);
        return configuration;
    }
}
