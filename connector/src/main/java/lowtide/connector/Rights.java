package lowtide.connector;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.hbase.ClusterMetrics.Option;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.security.SecurityCapability;
import org.apache.hadoop.hbase.security.AccessDeniedException;
import org.apache.hadoop.hbase.security.access.Permission;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Which tables this user may read and write as a whole. It has to be asked: of a read that names several families HBase
 * answers with those that the user may read, and says nothing of the others; and with
 * {@code hbase.security.access.early_out} switched off it answers every read that is not allowed with nothing.
 */
final class Rights {
    /** HBase's own class that decides, by its simple name: its master answers for it, and for no other. */
    private static final String OWN = "AccessController";
    private static final List<Permission.Action> ASKED = List.of(Permission.Action.READ, Permission.Action.WRITE);
    /** Whether it is there does not matter: rights are looked at first. */
    private static final byte[] SOME_ROW = {0};
    /** So many tables are tried at once. */
    private static final int AT_ONCE = 8;
    private static final ObjectMapper JSON = new ObjectMapper();

    private Rights() {
    }

    /**
     * Whether HBase checks permissions; true where it answers that it does not tell: what it refuses shows when it is
     * asked for. Where it does not answer, why is in that error, and in no later one.
     */
    static boolean checked(Admin admin) throws IOException {
        try {
            return admin.getSecurityCapabilities().contains(SecurityCapability.AUTHORIZATION);
        } catch (DoNotRetryIOException e) {
            return true;
        }
    }

    /**
     * Whether HBase's own class decides. Where another product does, in its place, HBase's master answers questions
     * about rights all the same, by grants of its own that nobody goes by.
     */
    static boolean answered(Admin admin) throws IOException {
        return admin.getClusterMetrics(EnumSet.of(Option.MASTER_COPROCESSORS)).getMasterCoprocessorNames()
                .contains(OWN);
    }

    /**
     * What the user lacks on these tables. HBase's own class is asked, for READ and WRITE on each whole table, in one
     * call; of another product's each family is tried, by itself, whether it may be read. One that is not there lacks
     * nothing.
     *
     * @param tables JSON: families by table; the tables are enabled
     * @return JSON: a list of {@code user}, {@code table} and {@code right}; where it was tried with {@code families}
     *     (those that were refused) and {@code unknown} (why it is not known; else empty)
     */
    static String lacking(Map<String, String> options, String tables) throws IOException {
        Map<String, List<String>> families = JSON.readValue(tables, new TypeReference<>() {
        });
        Connection connection = Connections.get(options);
        String user = Connections.user(options).getShortName();
        ArrayNode lacks = JSON.createArrayNode();
        try (Admin admin = connection.getAdmin()) {
            if (families.isEmpty() || !checked(admin)) {
                return lacks.toString();
            }
            if (answered(admin)) {
                ask(admin, user, List.copyOf(families.keySet()), lacks);
            } else {
                tryEach(connection, user, families, lacks);
            }
        }
        return lacks.toString();
    }

    private static void ask(Admin admin, String user, List<String> tables, ArrayNode lacks) throws IOException {
        List<Permission> wanted = new ArrayList<>();
        for (String table : tables) {
            for (Permission.Action action : ASKED) {
                wanted.add(Permission.newBuilder(Options.tableName(table)).withActions(action).build());
            }
        }
        List<Boolean> has = admin.hasUserPermissions(wanted);
        for (int i = 0; i < has.size(); i++) {
            String table = tables.get(i / ASKED.size());
            // The grants on a table go with it, so that of one that went meanwhile nothing is answered.
            if (!has.get(i) && admin.tableExists(Options.tableName(table))) {
                lacks.add(lack(user, table, ASKED.get(i % ASKED.size())));
            }
        }
    }

    private static void tryEach(Connection connection, String user, Map<String, List<String>> families,
            ArrayNode lacks) throws IOException {
        ExecutorService pool = Executors.newFixedThreadPool(Math.min(AT_ONCE, families.size()));
        try {
            List<Future<ObjectNode>> tried = new ArrayList<>();
            families.forEach((table, of) -> tried.add(pool.submit(() -> tryOne(connection, user, table, of))));
            for (Future<ObjectNode> one : tried) {
                ObjectNode lack = one.get();
                if (lack != null) {
                    lacks.add(lack);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while it was tried which families may be read", e);
        } catch (ExecutionException e) {
            throw new IOException(e.getCause());
        } finally {
            pool.shutdownNow();
        }
    }

    /**
     * What the user lacks; null: nothing. Asked whether a row exists, Apache Ranger refuses a family of which it would
     * hide but a column; asked for the row, it would hide that.
     */
    static ObjectNode tryOne(Connection connection, String user, String name, List<String> families) {
        List<String> refused = new ArrayList<>();
        String unknown = "";
        try (Table table = connection.getTable(Options.tableName(name))) {
            for (String family : families) {
                try {
                    table.exists(new Get(SOME_ROW).addFamily(Bytes.toBytes(family)));
                } catch (AccessDeniedException e) {
                    refused.add(family);
                }
            }
        } catch (TableNotFoundException e) {
            return null;
        } catch (IOException e) {
            unknown = String.valueOf(e.getMessage()).lines().findFirst().orElse(e.getClass().getSimpleName());
        }
        if (refused.isEmpty() && unknown.isEmpty()) {
            return null;
        }
        ObjectNode lack = lack(user, name, Permission.Action.READ).put("unknown", refused.isEmpty() ? unknown : "");
        refused.forEach(lack.withArray("families")::add);
        return lack;
    }

    private static ObjectNode lack(String user, String table, Permission.Action action) {
        return JSON.createObjectNode().put("user", user).put("table", table).put("right", action.name());
    }
}
