package lowtide.workload;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Table;
import org.apache.omid.committable.CommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTableConfig;
import org.apache.omid.transaction.CrashPoints;
import org.apache.omid.transaction.HBaseOmidClientConfiguration;
import org.apache.omid.tso.client.TSOClient;
import org.apache.omid.tso.client.TSOProtocol;

/** The connections of one client process: HBase, Omid's commit table, and Omid's oracle (reached when first needed). */
final class Store {

    final Connection connection;
    final Admin admin;
    final CommitTable.Client commitTable;

    final HBaseCommitTableConfig commits;

    private final String oracleAddress;
    private TSOProtocol oracle;
    private CrashPoints crashPoints;

    Store(String oracleAddress) throws IOException {
        this(oracleAddress, HBaseCommitTableConfig.DEFAULT_COMMIT_TABLE_NAME);
    }

    Store(String oracleAddress, String commitTable) throws IOException {
        this.oracleAddress = oracleAddress;
        this.commits = new HBaseCommitTableConfig();
        this.commits.setTableName(commitTable);
        this.connection = ConnectionFactory.createConnection(hbase());
        this.admin = connection.getAdmin();
        this.commitTable = new HBaseCommitTable(connection, commits).getClient();
    }

    Table table(String name) throws IOException {
        return connection.getTable(TableName.valueOf(name));
    }

    synchronized TSOProtocol oracle() throws IOException, InterruptedException {
        if (oracle == null) {
            oracle = TSOClient.newInstance(omid().getOmidClientConfiguration());
        }
        return oracle;
    }

    synchronized CrashPoints crashPoints() throws IOException, InterruptedException {
        if (crashPoints == null) {
            crashPoints = new CrashPoints(omid(), connection, oracle(), commitTable);
        }
        return crashPoints;
    }

    long watermark() throws Exception {
        return commitTable.readLowWatermark().get();
    }

    private HBaseOmidClientConfiguration omid() {
        HBaseOmidClientConfiguration configuration = new HBaseOmidClientConfiguration();
        configuration.setConnectionString(oracleAddress);
        configuration.setCommitTableName(commits.getTableName());
        configuration.setReconnectionDelayInSecs(1);
        configuration.setHBaseConfiguration(hbase());
        return configuration;
    }

    private static Configuration hbase() {
        return HBaseConfiguration.create();
    }
}
