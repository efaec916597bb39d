package lowtide.store;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.security.access.AccessControlClient;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.PermissionStorage;
import org.apache.hadoop.hbase.security.access.UserPermission;

/**
 * Rights in a store that checks them: given by its master itself, as nobody else has the superuser's key at hand; and by
 * who may give them, {@code Grants USER TABLE...}: READ, WRITE and ADMIN on each of these tables.
 */
public final class Grants {

    /** Of our own: users to be granted READ, WRITE, CREATE and ADMIN, globally; with commas between. */
    static final String GRANTED = "lowtide.store.granted";

    private Grants() {}

    public static void main(String[] args) throws Exception {
        Permission.Action[] actions = {Permission.Action.READ, Permission.Action.WRITE, Permission.Action.ADMIN};
        try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
                Admin admin = connection.getAdmin()) {
            for (int i = 1; i < args.length; i++) {
                Permission permission = Permission.newBuilder(TableName.valueOf(args[i])).withActions(actions).build();
                admin.grant(new UserPermission(args[0], permission), false);
            }
        }
    }

    /** Waits for the table of rights, and gives them; what it gave before it gives once more. */
    static void give(String... users) {
        Configuration configuration = HBaseConfiguration.create();
        // It fails until the master has logged in and is up: then at once, so that it is asked again soon.
        configuration.setInt(HConstants.HBASE_CLIENT_RETRIES_NUMBER, 1);
        configuration.setInt(HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, 5_000);
        configuration.setInt("zookeeper.recovery.retry", 1);
        while (true) {
            try (Connection connection = ConnectionFactory.createConnection(configuration);
                    Admin admin = connection.getAdmin()) {
                if (admin.isTableAvailable(PermissionStorage.ACL_TABLE_NAME)) {
                    for (String user : users) {
                        AccessControlClient.grant(
                                connection,
                                user,
                                Permission.Action.READ,
                                Permission.Action.WRITE,
                                Permission.Action.CREATE,
                                Permission.Action.ADMIN);
                    }
                    return;
                }
            } catch (Throwable e) { // AccessControlClient throws just that
                System.err.println("No rights granted yet: " + e);
            }
            try {
                Thread.sleep(500);
            } catch (InterruptedException e) {
                return;
            }
        }
    }
}
