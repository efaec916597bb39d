package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.omid.committable.CommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTable;
import org.apache.omid.committable.hbase.HBaseCommitTableConfig;
import org.apache.omid.transaction.CrashPoints;
import org.apache.omid.transaction.HBaseOmidClientConfiguration;
import org.apache.omid.transaction.HBaseTransactionManager;
import org.apache.omid.tso.client.OmidClientConfiguration;
import org.apache.omid.tso.client.TSOClient;

/**
 * A client of Apache Phoenix driven from outside, as {@link Client} is one of Omid's: SQL on the standard input, rows on the
 * standard output, one JSON object a line.
 *
 * <p>The Omid client inside is Phoenix's but for the trap doors of {@link CrashPoints}.
 *
 * <p>Statements run in named sessions, each a connection of its own without auto-commit. Phoenix is found on the class path at run
 * time alone: the store's own jar needs none of it.
 */
public final class Sql {

    private final String url;
    private final CrashPoints points;
    private final Map<String, Connection> sessions = new HashMap<>();

    private Sql(String url) throws Exception {
        this.url = url;
        this.points = trapDoors();
    }

    /** @param args the JDBC address, {@code jdbc:phoenix:host:port} */
    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // libraries that print must not disturb the answers
        Sql client = new Sql(args[0]);
        Commands commands = new Commands();
        commands.add("sql", client::sql);
        commands.add("commit", client::commit);
        commands.add("rollback", client::rollback);
        commands.add("start", request -> new JsonPrimitive(start(client.session(request))));
        commands.add("committed", client::committed);
        commands.serve(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)), answers);
        Runtime.getRuntime().halt(0); // Phoenix leaves threads that would keep the process
    }

    /** The rows of a query, or how many rows a statement changed. */
    private JsonElement sql(JsonObject request) throws SQLException {
        try (PreparedStatement statement = session(request).prepareStatement(request.get("sql").getAsString())) {
            JsonArray values = request.getAsJsonArray("values");
            for (int i = 0; i < values.size(); i++) {
                statement.setObject(i + 1, value(values.get(i)));
            }
            if (!statement.execute()) {
                return new JsonPrimitive(statement.getUpdateCount());
            }
            try (ResultSet found = statement.getResultSet()) {
                return rows(found);
            }
        }
    }

    private static JsonArray rows(ResultSet found) throws SQLException {
        JsonArray rows = new JsonArray();
        int columns = found.getMetaData().getColumnCount();
        while (found.next()) {
            JsonArray row = new JsonArray(columns);
            for (int i = 1; i <= columns; i++) {
                Object value = found.getObject(i);
                row.add(value == null ? JsonNull.INSTANCE : Json.element(value));
            }
            rows.add(row);
        }
        return rows;
    }

    private static Object value(JsonElement value) {
        if (value.isJsonNull()) {
            return null;
        }
        JsonPrimitive primitive = value.getAsJsonPrimitive();
        return primitive.isNumber() ? (Object) primitive.getAsLong() : primitive.getAsString();
    }

    /**
     * Commits. With a {@code point}, the client stops there for ever, as a dead one does: the session is gone then. Answers
     * whether it did.
     */
    private JsonElement commit(JsonObject request) throws Exception {
        Connection session = session(request);
        if (!request.has("point")) {
            session.commit();
            return new JsonPrimitive(false);
        }
        CountDownLatch stopped = new CountDownLatch(1);
        long start = start(session);
        points.arm(start, request.get("point").getAsInt(), () -> {
            stopped.countDown();
            for (;;) {
                LockSupport.park(); // not an error: Phoenix would roll back
            }
        });
        CompletableFuture<Void> over = new CompletableFuture<>();
        Thread committer = new Thread(() -> {
            try {
                session.commit();
                over.complete(null);
            } catch (Throwable e) {
                over.completeExceptionally(e);
            }
        }, "commit of " + start);
        committer.setDaemon(true);
        committer.start();
        while (!over.isDone() && stopped.getCount() > 0) {
            stopped.await(1, TimeUnit.MILLISECONDS);
        }
        if (stopped.getCount() == 0) {
            sessions.remove(request.get("session").getAsString());
            return new JsonPrimitive(true);
        }
        points.disarm(start);
        over.get();
        return new JsonPrimitive(false);
    }

    /** The start timestamp of the session's transaction; Phoenix is not there when this is compiled. */
    private static long start(Connection session) throws ReflectiveOperationException, SQLException {
        Object connection = session.unwrap(Class.forName("org.apache.phoenix.jdbc.PhoenixConnection"));
        Object state = connection.getClass().getMethod("getMutationState").invoke(connection);
        return (Long) state.getClass().getMethod("getInitialWritePointer").invoke(state);
    }

    /** The commit timestamp of a transaction of this client's, or null: it did not commit. */
    private JsonElement committed(JsonObject request) {
        Long commit = points.committed(request.get("start").getAsLong());
        return commit == null ? JsonNull.INSTANCE : new JsonPrimitive(commit);
    }

    /** Puts Omid's client with trap doors in the place of the one that Phoenix would make, which is set up the same. */
    private static CrashPoints trapDoors() throws Exception {
        HBaseOmidClientConfiguration configuration = new HBaseOmidClientConfiguration();
        configuration.setConflictAnalysisLevel(OmidClientConfiguration.ConflictDetectionLevel.ROW);
        org.apache.hadoop.hbase.client.Connection hbase =
                ConnectionFactory.createConnection(HBaseConfiguration.create());
        CommitTable.Client commitTable = new HBaseCommitTable(hbase, new HBaseCommitTableConfig()).getClient();
        CrashPoints points = new CrashPoints(
                configuration, hbase, TSOClient.newInstance(configuration.getOmidClientConfiguration()), commitTable);
        Class<?> type = Class.forName("org.apache.phoenix.transaction.OmidTransactionProvider");
        Object provider = type.getMethod("getInstance").invoke(null);
        type.getMethod("injectTestService", HBaseTransactionManager.class, CommitTable.Client.class)
                .invoke(provider, points.manager(), commitTable);
        return points;
    }

    private JsonElement rollback(JsonObject request) throws SQLException {
        session(request).rollback();
        return null;
    }

    private Connection session(JsonObject request) throws SQLException {
        String name = request.get("session").getAsString();
        Connection session = sessions.get(name);
        if (session == null) {
            session = DriverManager.getConnection(url);
            session.setAutoCommit(false);
            sessions.put(name, session);
        }
        return session;
    }
}
