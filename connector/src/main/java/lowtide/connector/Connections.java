package lowtide.connector;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
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

/**
 * One HBase connection per JVM, map of options and token of the current user. Connections live as long as the JVM: never
 * close one.
 */
final class Connections {
    private static final Map<Map<String, String>, Connection> OPEN = new HashMap<>();
    /** Beside the options in a key of {@link #OPEN}; none of HBase's. */
    private static final String TOKEN = "lowtide.token";
    /**
     * What bounds the time until an unreachable cluster or region becomes an error: HBase's own defaults retry for
     * many minutes. An option of the same name wins.
     */
    private static final Map<String, String> BOUNDS = Map.of(
            HConstants.HBASE_CLIENT_RETRIES_NUMBER, "10",
            HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, "120000",
            HConstants.HBASE_CLIENT_META_OPERATION_TIMEOUT, "60000",
            "zookeeper.recovery.retry", "3");

    private static final Map<List<String>, User> LOGINS = new HashMap<>();
    /** Hadoop's login is the JVM's, and is set up when it starts. */
    private static final String UNTOLD = "Hadoop in this JVM knows nothing of Kerberos, so that the keytab of "
            + AuthUtil.HBASE_CLIENT_KEYTAB_FILE + " is of no use: have a core-site.xml that says "
            + "hadoop.security.authentication: kerberos where HADOOP_CONF_DIR leads, on the driver's machine and on each "
            + "executor's";

    private Connections() {
    }

    /**
     * The connection for these options; opened if there is none, or if the one there is was closed, or is of a token that
     * was replaced since: HBase's client would show the old one to each server that it comes to again, which lets nobody in
     * by it once its time is over. Who works by the old one goes on with it.
     */
    static Connection get(Map<String, String> options) throws IOException {
        Map<String, String> key = new TreeMap<>(options);
        key.put(TOKEN, Logins.token());
        synchronized (OPEN) {
            Connection connection = OPEN.get(key);
            if (connection == null || connection.isClosed() || connection.isAborted()) {
                Configuration configuration = configuration(options);
                connection = ConnectionFactory.createConnection(configuration, null, user(configuration));
                OPEN.put(key, connection);
            }
            return connection;
        }
    }

    /**
     * Whom a connection of these options is: the current user, who has a token for HBase that Spark fetched, or else the
     * principal of {@code hbase.client.keytab.principal}, where there is one and HBase asks for logins.
     *
     * <p>HBase's client logs in with that keytab by itself, and goes on as the current user: in a task of Spark's that is
     * the one whom Spark set, who has no ticket. And it makes it the JVM's login, with which Spark goes to its own file
     * systems. So the login is the connection's alone; HBase's client renews it, as any that is from a keytab.
     */
    static User user(Map<String, String> options) throws IOException {
        return user(configuration(options));
    }

    private static User user(Configuration configuration) throws IOException {
        String principal = configuration.get(AuthUtil.HBASE_CLIENT_KERBEROS_PRINCIPAL);
        String keytab = configuration.get(AuthUtil.HBASE_CLIENT_KEYTAB_FILE);
        if (principal == null || keytab == null || !User.isHBaseSecurityEnabled(configuration)
                || !Logins.token().isEmpty()) { // an executor need not have the file then
            return User.getCurrent();
        }
        if (!UserGroupInformation.isSecurityEnabled()) {
            throw new IOException(UNTOLD);
        }
        synchronized (LOGINS) {
            User user = LOGINS.get(List.of(principal, keytab));
            if (user == null) {
                user = User.create(UserGroupInformation.loginUserFromKeytabAndReturnUGI(principal, keytab));
                LOGINS.put(List.of(principal, keytab), user);
            }
            return user;
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
