package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * What a writer goes by: cells of Lowtide's records that must hold what the run wrote there, and tables that must still
 * be those that the run has read. An executor that the driver has lost goes on writing when the run has long ended and
 * another one has claimed the table, and a table may be restored in place at any time; so a writer reads its claims
 * again before each batch, and sends a batch only as long as what it read is fresh.
 */
final class Claims {
    /**
     * So long after a claim was read a batch may be sent. A process that was suspended in between reads again, or gives
     * up.
     */
    static final long FRESH_MILLIS = 10_000;

    /** What must stand for the write to go on. */
    interface Claim extends Serializable {
        boolean stands(Connection connection) throws IOException;

        /** What has happened where it does not stand. */
        String lost();
    }

    /** A cell and the value it must have; null: it must not be there. And what it means that it is otherwise. */
    record CellClaim(String table, byte[] row, byte[] family, byte[] qualifier, byte[] value, String changed)
            implements Claim {
        @Override
        public boolean stands(Connection connection) throws IOException {
            return firstLost(connection, List.of(this)) == null;
        }

        /** The first of these claims, of one table, that does not stand; null: all do. They are read together. */
        static CellClaim firstLost(Connection connection, List<CellClaim> claims) throws IOException {
            List<Get> asked = new ArrayList<>();
            for (CellClaim claim : claims) {
                asked.add(new Get(claim.row).addColumn(claim.family, claim.qualifier));
            }
            try (Table records = connection.getTable(TableName.valueOf(claims.get(0).table))) {
                Result[] found = records.get(asked);
                for (int i = 0; i < found.length; i++) {
                    CellClaim claim = claims.get(i);
                    if (!Arrays.equals(claim.value, found[i].getValue(claim.family, claim.qualifier))) {
                        return claim;
                    }
                }
            }
            return null;
        }

        @Override
        public String lost() {
            return changed + " (" + this + " has changed)";
        }

        @Override
        public String toString() {
            return "row " + Bytes.toStringBinary(row) + " of " + table;
        }
    }

    private static final String TAKEN_OVER = "another run, or a restore, has taken over";

    /** A table and the time of its state, see {@link Tables#stated}. */
    record LifeClaim(String table, long stated) implements Claim {
        @Override
        public boolean stands(Connection connection) throws IOException {
            return Tables.stated(connection, TableName.valueOf(table)) == stated;
        }

        @Override
        public String lost() {
            return table + " was restored, made anew, or disabled and enabled while the run went on";
        }

        @Override
        public String toString() {
            return "the state of " + table;
        }
    }

    /**
     * When the claims were read that a batch is sent by; by two clocks, for the monotonic one stands still in a machine
     * that sleeps.
     */
    private record ReadTime(long nanos, long millis) {
        static ReadTime now() {
            return new ReadTime(System.nanoTime(), System.currentTimeMillis());
        }

        long age() {
            return Math.max(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - nanos),
                    System.currentTimeMillis() - millis);
        }
    }

    private final List<Claim> claims;
    private final long freshMillis;
    /** Why nothing more is written; for good. */
    private String lost;

    Claims(List<Claim> claims) {
        this(claims, FRESH_MILLIS);
    }

    Claims(List<Claim> claims, long freshMillis) {
        this.claims = claims;
        this.freshMillis = freshMillis;
    }

    /** The claims of the option {@code holding}: bytes in hex, names as text. */
    static ArrayList<Claim> parse(String json) {
        ArrayList<Claim> parsed = new ArrayList<>();
        try {
            for (JsonNode node : new ObjectMapper().readTree(json)) {
                parsed.add(node.path("stated").isIntegralNumber()
                        ? new LifeClaim(text(node, "table"), node.path("stated").asLong())
                        : new CellClaim(text(node, "table"), Bytes.fromHex(text(node, "row")),
                                Bytes.toBytes(text(node, "family")), Bytes.toBytes(text(node, "qualifier")),
                                node.path("value").isNull() ? null : Bytes.fromHex(text(node, "value")),
                                node.path("lost").asText(TAKEN_OVER)));
            }
        } catch (IOException | IllegalArgumentException e) {
            throw new IllegalArgumentException("Option holding = " + json + " cannot be used: " + e.getMessage()
                    + ". Give [{\"table\": text, \"row\": hex, \"family\": text, \"qualifier\": text, \"value\": hex or"
                    + " null, \"lost\": text or nothing}, ...], of a table's life {\"table\": text, \"stated\": ms}.", e);
        }
        return parsed;
    }

    private static String text(JsonNode node, String name) {
        if (!node.path(name).isTextual()) {
            throw new IllegalArgumentException("a claim has no text \"" + name + "\"");
        }
        return node.path(name).asText();
    }

    /** Whether one stands no more, so that nothing will be permitted again. */
    boolean lost() {
        return lost != null;
    }

    /** Those of one table's cells are read together: of many, one after the other would be stale before the last. */
    private Claim firstLost(Connection connection) throws IOException {
        Map<String, List<CellClaim>> cells = new LinkedHashMap<>();
        for (Claim claim : claims) {
            if (claim instanceof CellClaim cell) {
                cells.computeIfAbsent(cell.table, table -> new ArrayList<>()).add(cell);
            } else if (!claim.stands(connection)) {
                return claim;
            }
        }
        for (List<CellClaim> ofTable : cells.values()) {
            CellClaim gone = CellClaim.firstLost(connection, ofTable);
            if (gone != null) {
                return gone;
            }
        }
        return null;
    }

    /** Reads the claims; gives what tells, at any later time, why a batch must not be sent (any more), or null. */
    Batches.Permit read(Connection connection) throws IOException {
        if (claims.isEmpty()) {
            return Batches.ALWAYS;
        }
        ReadTime read = ReadTime.now();
        Claim gone = lost == null ? firstLost(connection) : null;
        if (gone != null) {
            lost = "not tried: " + gone.lost();
        }
        if (lost != null) {
            return () -> lost;
        }
        return () -> {
            long age = read.age();
            return age <= freshMillis ? null
                    : "not tried: " + age + " ms have passed since the claim was read (" + claims.get(0) + ")";
        };
    }
}
