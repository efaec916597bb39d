package lowtide.store;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.security.access.AccessControlClient;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.security.access.PermissionStorage;

/** Rights in a store that checks them, given by its master itself: nobody else has the superuser's key at hand. */
final class Grants {

    /** Of our own: users to be granted READ, WRITE, CREATE and ADMIN, globally; with commas between. */
    static final String GRANTED = "lowtide.store.granted";

    private Grants() {}

    /** Waits for the table of rights, and gives them; what it gave before it gives once more. */
    static void give(String... users) {
        Configuration configuration = HBaseConfiguration.create();
        while (true) {
            // The first login of this process is the master's; until then there is none to connect with.
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
