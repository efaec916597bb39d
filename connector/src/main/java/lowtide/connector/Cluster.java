package lowtide.connector;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.ClusterMetrics;
import org.apache.hadoop.hbase.ClusterMetrics.Option;
import org.apache.hadoop.hbase.ServerMetrics;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.security.access.Permission;

/** What HBase's master tells of the cluster and of what this user may do in it; read by the driver, changes nothing. */
public final class Cluster {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<Permission.Action> NEEDED = List.of(Permission.Action.READ, Permission.Action.WRITE,
            Permission.Action.CREATE, Permission.Action.ADMIN);

    private Cluster() {
    }

    /**
     * JSON: {@code id}, {@code master}, {@code version} (the master's; of region servers HBase tells clients none),
     * {@code servers} (those that live), {@code dead} (those that do not), {@code heard} (the master's clock in ms when a region server reported last, 0: none did),
     * {@code user}, {@code checks} (whether HBase checks permissions), {@code lacks} (of READ, WRITE, CREATE, ADMIN
     * what this user does not have globally; null where HBase does not answer that, as where another product checks
     * permissions in its place).
     */
    public static String look(Map<String, String> options) throws IOException {
        Connection connection = Connections.get(options);
        try (Admin admin = connection.getAdmin()) {
            ClusterMetrics metrics = admin.getClusterMetrics(EnumSet.of(Option.CLUSTER_ID, Option.MASTER,
                    Option.HBASE_VERSION, Option.LIVE_SERVERS, Option.DEAD_SERVERS));
            ObjectNode found = JSON.createObjectNode();
            found.put("id", metrics.getClusterId());
            ServerName master = metrics.getMasterName();
            found.put("master", master == null ? "nobody" : master.getAddress().toString());
            found.put("version", metrics.getHBaseVersion());
            ArrayNode servers = found.putArray("servers");
            long heard = 0;
            for (Map.Entry<ServerName, ServerMetrics> server : metrics.getLiveServerMetrics().entrySet()) {
                servers.add(server.getKey().getAddress().toString());
                heard = Math.max(heard, server.getValue().getReportTimestamp());
            }
            ArrayNode dead = found.putArray("dead");
            metrics.getDeadServerNames().forEach(server -> dead.add(server.getAddress().toString()));
            found.put("heard", heard);
            found.put("user", Connections.user(options).getShortName());
            boolean checks = Rights.checked(admin);
            found.put("checks", checks);
            found.set("lacks", checks ? lacks(admin) : JSON.createArrayNode());
            return found.toString();
        }
    }

    /** See {@link Rights#lacking}. */
    public static String lacking(Map<String, String> options, String tables) throws IOException {
        return Rights.lacking(options, tables);
    }

    /** As whom HBase knows this driver, by its whole name; it is not asked. */
    public static String principal(Map<String, String> options) throws IOException {
        return Connections.user(options).getName();
    }

    /** Null where HBase does not answer for itself. */
    private static ArrayNode lacks(Admin admin) {
        List<Permission> wanted = NEEDED.stream()
                .map(action -> Permission.newBuilder().withActions(action).build()).toList();
        try {
            if (!Rights.answered(admin)) {
                return null;
            }
            List<Boolean> has = admin.hasUserPermissions(wanted);
            ArrayNode lacks = JSON.createArrayNode();
            for (int i = 0; i < has.size(); i++) {
                if (!has.get(i)) {
                    lacks.add(NEEDED.get(i).name());
                }
            }
            return lacks;
        } catch (IOException e) {
            return null;
        }
    }
}
