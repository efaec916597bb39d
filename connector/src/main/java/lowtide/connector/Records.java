package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.MissingNode;
import java.io.IOException;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * What reads with asOf need of Lowtide's own table, which {@code lowtide.store.state} writes: family s, values in
 * JSON.
 */
final class Records {
    static final byte[] FAMILY = Bytes.toBytes("s");
    static final byte[] VALUE = Bytes.toBytes("value");
    /** Columns of {@link #historyRow}: the mark that was applied last, and the one that a run announced. */
    static final byte[] MARK = Bytes.toBytes("mark");
    static final byte[] INTENDED = Bytes.toBytes("intended");
    /** The newest format that is known here, as {@code lowtide.store.rows.FORMAT}. */
    private static final int FORMAT = 5;
    private static final ObjectMapper JSON = new ObjectMapper();

    private Records() {
    }

    /** The mark that history GC applied last; 0 where there is none. */
    static long mark(Connection connection, Options options) throws IOException {
        byte[] row = historyRow(options.table);
        return mark(read(connection, options, row, MARK), row, options);
    }

    /**
     * The greatest mark that was ever applied to any table, where this one may have been here under another name: marks
     * are kept by name, and a clone lacks what was removed of the table that it was made of. 0: it was not. As {@code
     * StateStore.mark_of_any}.
     */
    static long markOfAny(Connection connection, Options options) throws IOException {
        JsonNode listed = listed(connection, options);
        if (!listed.isMissingNode() && number(listed, "came_after") == 0 || !there(connection, options)) {
            return 0;
        }
        long greatest = 0;
        Scan scan = new Scan().withStartRow(historyRow("")).withStopRow(Bytes.toBytes("history0")) // '0' follows '/'
                .addColumn(FAMILY, MARK);
        try (Table table = connection.getTable(TableName.valueOf(options.stateTable));
                ResultScanner marks = table.getScanner(scan)) {
            for (Result mark : marks) {
                greatest = Math.max(greatest, mark(parsed(mark, MARK), mark.getRow(), options));
            }
        }
        return greatest;
    }

    private static long mark(JsonNode applied, byte[] row, Options options) {
        if (applied != null && !applied.path("mark").isIntegralNumber()) {
            throw new IllegalArgumentException("The ancient history mark of " + Bytes.toString(row).substring(8)
                    + " (row " + Bytes.toString(row) + " of " + options.stateTable + ") cannot be understood: "
                    + applied + ". Nothing is read with asOf without knowing what was removed.");
        }
        return number(applied, "mark");
    }

    /** The table as the last inventory lists it; a missing node where it does not. */
    static JsonNode listed(Connection connection, Options options) throws IOException {
        JsonNode inventory = read(connection, options, Bytes.toBytes("inventory"), VALUE);
        if (inventory != null) {
            String name = options.tableName().getNameAsString();
            // In format 1 it was the tables alone.
            for (JsonNode entry : inventory.isArray() ? inventory : inventory.path("tables")) {
                if (entry.path("table").asText().equals(name)) {
                    return entry;
                }
            }
        }
        return MissingNode.getInstance();
    }

    /**
     * What runs remember of the oracle: the greatest low watermark, whether it went back since, and in which life the
     * commit table has all its entries.
     */
    static JsonNode oracle(Connection connection, Options options) throws IOException {
        JsonNode oracle = read(connection, options, Bytes.toBytes("oracle"), VALUE);
        return oracle == null ? MissingNode.getInstance() : oracle;
    }

    /**
     * What is remembered of the journal: whether it is there, the greatest start timestamp that it let go of, and up to
     * which it was pruned, in which life of its table it is known to be whole, and what makes that doubtful.
     */
    static JsonNode journal(Connection connection, Options options) throws IOException {
        JsonNode journal = read(connection, options, Bytes.toBytes("journal"), VALUE);
        return journal == null ? MissingNode.getInstance() : journal;
    }

    /**
     * Rows of the journal that are older, in ms, may be of transactions whose numbers the oracle gave a second time.
     */
    static long numberedAnew(Connection connection, Options options) throws IOException {
        return number(read(connection, options, Bytes.toBytes("generation"), VALUE), "since");
    }

    /**
     * The last timestamp that an oracle that counts had given out by then, as far as samples tell; -1 before the first.
     */
    static long sampled(Connection connection, Options options, long millis) throws IOException {
        long reached = -1;
        if (!there(connection, options)) {
            return reached;
        }
        Scan scan = new Scan().withStartRow(Bytes.toBytes("clock/"))
                .withStopRow(Bytes.toBytes(String.format(Locale.ROOT, "clock/%020d", millis)), true);
        try (Table table = connection.getTable(TableName.valueOf(options.stateTable));
                ResultScanner samples = table.getScanner(scan)) {
            for (Result sample : samples) {
                byte[] value = sample.getValue(FAMILY, VALUE);
                reached = Math.max(reached, number(JSON.readTree(value), "timestamp"));
            }
        }
        return reached;
    }

    /** The row of a table's ancient history mark. */
    static byte[] historyRow(String table) {
        return Bytes.toBytes("history/" + table);
    }

    /** The row and the column that count a table's reads of one {@link AsOf#bucket}. */
    static byte[] readsRow(String table) {
        return Bytes.toBytes("reads/" + table);
    }

    static byte[] readsColumn(int bucket) {
        return Bytes.toBytes("age/" + bucket);
    }

    /** The families that the inventory lists as transactional for a table of {@link #listed}. */
    static Set<String> families(JsonNode listed) {
        return names(listed, "families");
    }

    /** Those that nothing marks, and in which it saw shadow cells; into a disabled table it did not look. */
    static Set<String> unmarked(JsonNode listed) {
        return listed.path("enabled").asBoolean() ? names(listed, "unmarked") : new TreeSet<>();
    }

    private static Set<String> names(JsonNode listed, String which) {
        Set<String> names = new TreeSet<>();
        listed.path(which).forEach(name -> names.add(name.asText()));
        return names;
    }

    private static long number(JsonNode node, String name) {
        return node == null ? 0 : node.path(name).asLong();
    }

    /** A value; null where there is none; an error where a newer Lowtide wrote the records. */
    private static JsonNode read(Connection connection, Options options, byte[] row, byte[] column) throws IOException {
        if (!there(connection, options)) {
            return null;
        }
        try (Table table = connection.getTable(TableName.valueOf(options.stateTable))) {
            Result[] found = table.get(List.of(new Get(Bytes.toBytes("format")), new Get(row)));
            long format = number(parsed(found[0], VALUE), "format");
            if (format > FORMAT) {
                throw new IllegalArgumentException("The records in " + options.stateTable + " have format " + format
                        + ", written by a newer Lowtide; this connector knows formats up to " + FORMAT
                        + ". Put the connector of that version on Spark's class path.");
            }
            return parsed(found[1], column);
        }
    }

    /** A value of a row, in JSON; null where there is none. */
    static JsonNode parsed(Result found, byte[] family, byte[] column) throws IOException {
        byte[] value = found.getValue(family, column);
        return value == null || value.length == 0 ? null : JSON.readTree(value);
    }

    private static JsonNode parsed(Result found, byte[] column) throws IOException {
        return parsed(found, FAMILY, column);
    }

    /** Whether there is a state table; an error where one was named that is not there. */
    private static boolean there(Connection connection, Options options) throws IOException {
        try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
            if (admin.tableExists(TableName.valueOf(options.stateTable))) {
                return true;
            }
        }
        if (options.namesStateTable) {
            throw new IllegalArgumentException("Option stateTable = " + options.stateTable + ": there is no such"
                    + " table, and without it nothing is known of what was removed. Name the table that Lowtide's"
                    + " configuration names (state.table), or leave the option out where Lowtide never ran.");
        }
        return false;
    }
}
