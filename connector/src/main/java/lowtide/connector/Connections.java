package lowtide.connector;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.AuthUtil;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.security.User;
import org.apache.hadoop.security.UserGroupInformation;

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

    private static final String AUTHENTICATION = "hbase.security.authentication";
    /** Hadoop's login is the JVM's, and is set up when it starts. */
    private static final String UNTOLD = "Hadoop in this JVM knows nothing of Kerberos, so that the keytab of "
            + AuthUtil.HBASE_CLIENT_KEYTAB_FILE + " is of no use: have a core-site.xml that says "
            + "hadoop.security.authentication: kerberos where HADOOP_CONF_DIR leads, on the driver's machine and on each "
            + "executor's";

    private Connections() {
    }

    /** The connection for these options; opened if there is none, or if the one there is was closed. */
    static Connection get(Map<String, String> options) throws IOException {
        synchronized (OPEN) {
            Connection connection = OPEN.get(options);
            if (connection == null || connection.isClosed() || connection.isAborted()) {
                connection = open(configuration(options));
                OPEN.put(new TreeMap<>(options), connection);
            }
            return connection;
        }
    }

    /**
     * As the principal of {@code hbase.client.keytab.principal}, where there is one. HBase's client logs in with that
     * keytab by itself, and goes on as the current user: in a task of Spark's that is the one whom Spark set, who has no
     * ticket. The login is this JVM's own, so that HBase's client renews it.
     */
    private static Connection open(Configuration configuration) throws IOException {
        String principal = configuration.get(AuthUtil.HBASE_CLIENT_KERBEROS_PRINCIPAL);
        String keytab = configuration.get(AuthUtil.HBASE_CLIENT_KEYTAB_FILE);
        if (principal == null || keytab == null || !"kerberos".equals(configuration.get(AUTHENTICATION))) {
            return ConnectionFactory.createConnection(configuration);
        }
        if (!UserGroupInformation.isSecurityEnabled()) {
            throw new IOException(UNTOLD);
        }
        UserGroupInformation login = UserGroupInformation.getLoginUser();
        if (!login.hasKerberosCredentials() || !principal.equals(login.getUserName())) {
            UserGroupInformation.loginUserFromKeytab(principal, keytab);
        }
        User user = User.create(UserGroupInformation.getLoginUser());
        return ConnectionFactory.createConnection(configuration, null, user);
    }

    /** HBase's configuration with these options over it. */
    static Configuration configuration(Map<String, String> options) {
        Configuration configuration = HBaseConfiguration.create();
        BOUNDS.forEach(configuration::set);
        options.forEach(configuration::set);
        return configuration;
    }
}
