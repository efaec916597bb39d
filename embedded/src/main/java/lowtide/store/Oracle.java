package lowtide.store;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.security.AccessDeniedException;
import org.apache.omid.committable.hbase.HBaseCommitTableConfig;
import org.apache.omid.timestamp.storage.HBaseTimestampStorageConfig;
import org.apache.omid.tools.hbase.OmidTableManager;
import org.apache.omid.tso.TSOServer;

/**
 * Omid's status oracle, with its two tables made first when they are missing (Omid leaves that to an operator).
 *
 * <p>May be started while HBase still boots: the first call waits for it, and for the right to make tables where rights are
 * checked. Configuration comes from {@code hbase-site.xml}
 * and {@code omid-server-configuration.yml} on the class path.
 */
public final class Oracle {

    /** A minute's: the master grants rights as soon as it is up. */
    private static final int ATTEMPTS = 120;

    private Oracle() {}

    public static void main(String[] args) throws Exception {
        Configuration configuration = HBaseConfiguration.create();
        try (Connection connection = ConnectionFactory.createConnection(configuration);
                Admin admin = connection.getAdmin()) {
            make(admin, configuration, HBaseCommitTableConfig.DEFAULT_COMMIT_TABLE_NAME, "commit-table");
            make(admin, configuration, HBaseTimestampStorageConfig.DEFAULT_TIMESTAMP_STORAGE_TABLE_NAME, "timestamp-table");
        }
        TSOServer.main(args);
    }

    private static void make(Admin admin, Configuration configuration, String table, String command) throws Exception {
        for (int attempt = 0; !admin.tableExists(TableName.valueOf(table)); attempt++) {
            try {
                new OmidTableManager(command).executeActionsOnHBase(configuration);
            } catch (AccessDeniedException e) {
                if (attempt == ATTEMPTS) {
                    throw e;
                }
                Thread.sleep(500);
            }
        }
    }
}
