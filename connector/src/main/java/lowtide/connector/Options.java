package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.Serializable;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The options of one read or write, checked. Spark hands options over without their case; HBase's own keys need it, so
 * the map comes from {@code asCaseSensitiveMap}. Names of the connector's own options are taken in any case.
 */
final class Options implements Serializable {
    /** All that goes to executors has the options with it: one whose jar is of another contract cannot read them. */
    private static final long serialVersionUID = Contract.NUMBER;
    static final Set<String> NAMES = new TreeSet<>(List.of("view", "table", "read", "snapshot", "restoreDir",
            "ranges", "tables", "splitBytes", "rowsPerRange", "endRows", "raw", "allVersions", "traces", "writeId", "pairingLimit",
            "asOf", "hold",
            "holdOwner", "holdMaxAgeMillis", "holding", "stateTable", "journalTable", "commitTable", "commitFamily",
            "watermarkFamily", "clock", "lowLatency", "commitLimit", "perSecond", "gate"));
    private static final long DEFAULT_SPLIT_BYTES = 512L << 20;
    private static final long DEFAULT_COMMITS = 5_000_000;
    /** Shadow cells and early data cells of one row and family after which it is wide, see {@link VersionReader}. */
    static final int DEFAULT_PAIRING_LIMIT = 1 << 16;
    /** {@code hold_max_age} as it ships. */
    private static final long DEFAULT_HOLD_MILLIS = TimeUnit.DAYS.toMillis(7);

    /** A key range of the option {@code ranges}: [start, stop), empty for no bound; timestamps [from, to). */
    record Range(String id, byte[] start, byte[] stop, long from, long to) implements Serializable {
    }

    /**
     * A table of the option {@code tables}.
     *
     * @param families of it those that are read; null: all
     * @param ranges as of the option {@code ranges}; null: its regions
     */
    record TableRead(String table, ArrayList<String> families, ArrayList<Range> ranges) implements Serializable {
        TableName name() {
            return Options.tableName(table);
        }
    }

    /** {@code hbase.*} and {@code zookeeper.*}, as they were given. */
    final TreeMap<String, String> hbase = new TreeMap<>();
    final View view;
    final String table;
    final boolean readsFiles;
    final String snapshot;
    final String restoreDir;
    /** Null where the option is not given. */
    final ArrayList<Range> ranges;
    /** Tables that are read together in place of {@code table} and {@code ranges}; null where the option is not given. */
    final ArrayList<TableRead> tables;
    final long splitBytes;
    final long rowsPerRange;
    final boolean endRows;
    final boolean raw;
    final boolean allVersions;
    /** Whether tombstones, cells without qualifier and shadow cells without data pass every filter. */
    final boolean traces;
    final String writeId;
    /** The read point of the view {@code as_of}, as it was given. */
    final String asOf;
    /** Whether that read holds the table's history, and in whose name. */
    final boolean hold;
    final String holdOwner;
    /** What that hold lasts at most, renewals included. */
    final long holdMaxAgeMillis;
    /** Where Lowtide keeps its records and Omid its commits. */
    final String stateTable;
    /** Whether the state table was named rather than assumed: then it has to be there. */
    final boolean namesStateTable;
    final String journalTable;
    final String commitTable;
    final String commitFamily;
    final String watermarkFamily;
    final OracleClock clock;
    /** Whether the oracle leaves commit entries to its clients. */
    final boolean lowLatency;
    /** Entries of the commit table that a read with asOf keeps in memory at most. */
    final int commitLimit;
    /** What must hold in Lowtide's records for a write to go on. */
    final ArrayList<Claims.Claim> holding;
    /** Internal, for tests: cells of a row and family kept before it is taken for wide. */
    final int pairingLimit;
    /** Cells that all tasks read, or mutations that they send, at most; 0: no limit. */
    final long perSecond;
    /** The {@link Gate} that they pass for it: reads and writes that name the same one keep to their rates together. */
    final String gate;

    Options(Map<String, String> given) {
        Map<String, String> own = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        Set<String> known = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
        known.addAll(NAMES);
        for (Map.Entry<String, String> entry : given.entrySet()) {
            String name = entry.getKey();
            if (name.startsWith("hbase.") || name.startsWith("zookeeper.")) {
                hbase.put(name, entry.getValue());
            } else if (known.contains(name)) {
                own.put(name, entry.getValue());
            } else {
                throw new IllegalArgumentException("Unknown option: " + name + " = " + entry.getValue()
                        + ". Known are hbase.*, zookeeper.* and " + String.join(", ", NAMES) + ".");
            }
        }
        asOf = own.get("asOf");
        view = oneOf(View.class, "view", own.getOrDefault("view", asOf == null ? "versions" : "as_of"));
        hold = truth("hold", own.get("hold"));
        holdOwner = ascii(own.getOrDefault("holdOwner", myself()));
        if (own.containsKey("holdOwner") && holdOwner.isBlank()) {
            throw new IllegalArgumentException("Option holdOwner = " + holdOwner + " names nobody. Say who holds, so"
                    + " that others know whom to ask, or leave it out for the user's name.");
        }
        holdMaxAgeMillis = number("holdMaxAgeMillis", own.get("holdMaxAgeMillis"), DEFAULT_HOLD_MILLIS, 1);
        namesStateTable = own.containsKey("stateTable");
        stateTable = own.getOrDefault("stateTable", "LOWTIDE_STATE");
        journalTable = own.getOrDefault("journalTable", "LOWTIDE_JOURNAL");
        commitTable = own.getOrDefault("commitTable", "OMID_COMMIT_TABLE");
        commitFamily = own.getOrDefault("commitFamily", "F");
        watermarkFamily = own.getOrDefault("watermarkFamily", "LWF");
        clock = oneOf(OracleClock.class, "clock", own.getOrDefault("clock", "auto"));
        lowLatency = truth("lowLatency", own.get("lowLatency"));
        readsFiles = oneOf(Way.class, "read", own.getOrDefault("read", "rpc")) == Way.SNAPSHOT;
        table = canonical(own.get("table"));
        snapshot = own.get("snapshot");
        restoreDir = own.get("restoreDir");
        ranges = own.containsKey("ranges") ? parseRanges(own.get("ranges")) : null;
        tables = own.containsKey("tables") ? parseTables(own.get("tables")) : null;
        splitBytes = number("splitBytes", own.get("splitBytes"), DEFAULT_SPLIT_BYTES, 1);
        rowsPerRange = number("rowsPerRange", own.get("rowsPerRange"), 0, 0);
        endRows = truth("endRows", own.get("endRows"));
        raw = truth("raw", own.get("raw"));
        allVersions = truth("allVersions", own.get("allVersions"));
        traces = truth("traces", own.get("traces"));
        writeId = own.get("writeId");
        holding = own.containsKey("holding") ? Claims.parse(own.get("holding")) : new ArrayList<>();
        pairingLimit = (int) Math.min(Integer.MAX_VALUE,
                number("pairingLimit", own.get("pairingLimit"), DEFAULT_PAIRING_LIMIT, 1));
        commitLimit = (int) Math.min(Integer.MAX_VALUE - 8,
                number("commitLimit", own.get("commitLimit"), DEFAULT_COMMITS, 1));
        perSecond = number("perSecond", own.get("perSecond"), 0, 0);
        gate = own.getOrDefault("gate", perSecond > 0 ? UUID.randomUUID().toString() : "");
        if ((raw || allVersions) && view != View.CELLS) {
            throw new IllegalArgumentException("Option " + (raw ? "raw" : "allVersions")
                    + " = true does not go with view = "
                    + view.label + (raw ? ": only the view cells shows delete markers." : ": it is for the view cells."));
        }
        if (tables != null && (view != View.VERSIONS && view != View.CELLS && view != View.REGIONS || readsFiles
                || table != null || ranges != null)) {
            throw new IllegalArgumentException("Option tables goes with the views versions, cells and regions, with read ="
                    + " rpc, and without table and ranges: each of the tables has its own.");
        }
        if (view == View.AS_OF != (asOf != null) || hold && asOf == null) {
            throw new IllegalArgumentException("Options asOf and hold go with the view as_of and no other: give asOf ="
                    + " a time, a timestamp of the oracle, or latest; view = " + view.label + " was asked for.");
        }
        if (traces && view != View.VERSIONS || endRows && view == View.AS_OF) {
            throw new IllegalArgumentException("Option " + (traces ? "traces" : "endRows")
                    + " = true does not go with view = "
                    + view.label + ".");
        }
        if (readsFiles && view != View.VERSIONS && view != View.CELLS && view != View.AS_OF) {
            throw new IllegalArgumentException("Option read = snapshot does not go with view = " + view.label
                    + ": use it with the views versions, cells and as_of.");
        }
        if (view == View.AS_OF && (snapshot != null || restoreDir != null)) {
            throw new IllegalArgumentException("Options snapshot and restoreDir do not go with asOf: such a read"
                    + " makes an HBase snapshot of its own (read = snapshot), after it has read the commit table.");
        }
        if (readsFiles && hold) {
            throw new IllegalArgumentException("Option hold = true does not go with read = snapshot: history GC takes"
                    + " nothing from the HBase snapshot that the read makes. Leave hold out.");
        }
    }

    /** {@code default:orders} is {@code orders}: marks, holds and counts are kept under one name. */
    private static String canonical(String table) {
        try {
            return table == null || table.isEmpty() ? table : TableName.valueOf(table).getNameAsString();
        } catch (IllegalArgumentException e) {
            return table; // refused when it is used
        }
    }

    /** How cells are read. */
    private enum Way { RPC, SNAPSHOT }

    private static <E extends Enum<E>> E oneOf(Class<E> type, String name, String value) {
        for (E constant : type.getEnumConstants()) {
            if (constant.name().equalsIgnoreCase(value)) {
                return constant;
            }
        }
        List<String> names = new ArrayList<>();
        for (E constant : type.getEnumConstants()) {
            names.add(constant.name().toLowerCase(Locale.ROOT));
        }
        throw new IllegalArgumentException("Option " + name + " = " + value + " is not known. Use one of: "
                + String.join(", ", names) + ".");
    }

    private static long number(String name, String value, long absent, long least) {
        if (value == null) {
            return absent;
        }
        try {
            long number = Long.parseLong(value.trim());
            if (number >= least) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Told below, with the name of the option.
        }
        throw new IllegalArgumentException("Option " + name + " = " + value + " is not a whole number from " + least
                + " on.");
    }

    /** Who holds, where nobody says: as {@code lowtide.run.summary.myself} has it. */
    private static String myself() {
        String user = System.getProperty("user.name", "a Spark driver");
        try {
            return user + "@" + InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException e) {
            return user;
        }
    }

    private static String ascii(String text) {
        return text.replaceAll("[^ -~]", "?");
    }

    private static boolean truth(String name, String value) {
        if (value == null || value.equalsIgnoreCase("false")) {
            return false;
        }
        if (value.equalsIgnoreCase("true")) {
            return true;
        }
        throw new IllegalArgumentException("Option " + name + " = " + value + " is neither true nor false.");
    }

    private static ArrayList<TableRead> parseTables(String json) {
        ArrayList<TableRead> parsed = new ArrayList<>();
        try {
            for (JsonNode node : list(new ObjectMapper().readTree(json))) {
                if (!node.path("table").isTextual()) {
                    throw new IllegalArgumentException("an entry has no text \"table\"");
                }
                ArrayList<String> families = null;
                if (node.has("families")) {
                    families = new ArrayList<>();
                    for (JsonNode family : list(node.get("families"))) {
                        families.add(family.asText());
                    }
                }
                parsed.add(new TableRead(canonical(node.get("table").asText()), families,
                        node.has("ranges") ? ranges(node.get("ranges")) : null));
            }
        } catch (IOException | IllegalArgumentException e) {
            throw new IllegalArgumentException("Option tables = " + json + " cannot be used: " + e.getMessage()
                    + ". Give [{\"table\": text, \"families\": [text, ...], \"ranges\": as the option ranges}, ...].", e);
        }
        return parsed;
    }

    private static ArrayList<Range> parseRanges(String json) {
        try {
            return ranges(new ObjectMapper().readTree(json));
        } catch (IOException | IllegalArgumentException e) {
            throw new IllegalArgumentException("Option ranges = " + json + " cannot be used: " + e.getMessage()
                    + ". Give [{\"id\": text, \"start\": hex, \"stop\": hex, \"from\": number, \"to\": number},"
                    + " ...].", e);
        }
    }

    private static ArrayList<Range> ranges(JsonNode array) {
        ArrayList<Range> parsed = new ArrayList<>();
        for (JsonNode node : list(array)) {
            if (!node.path("id").isTextual()) {
                throw new IllegalArgumentException("an entry has no text \"id\"");
            }
            long from = bound(node, "from", 0);
            long to = bound(node, "to", Long.MAX_VALUE);
            if (from < 0 || to < from) {
                throw new IllegalArgumentException("[" + from + ", " + to + ") of " + node.path("id").asText()
                        + " is no time range");
            }
            parsed.add(new Range(node.path("id").asText(), hex(node, "start"), hex(node, "stop"), from, to));
        }
        return parsed;
    }

    private static JsonNode list(JsonNode node) {
        if (!node.isArray()) {
            throw new IllegalArgumentException("not a list");
        }
        return node;
    }

    private static long bound(JsonNode node, String name, long absent) {
        JsonNode value = node.path(name);
        if (value.isMissingNode() || value.isNull()) {
            return absent;
        }
        if (!value.isIntegralNumber() || !value.canConvertToLong()) {
            throw new IllegalArgumentException("\"" + name + "\" of " + node.path("id").asText()
                    + " is not a whole number of 64 bits");
        }
        return value.longValue();
    }

    private static byte[] hex(JsonNode node, String name) {
        JsonNode value = node.path(name);
        if (value.isMissingNode() || value.isNull()) {
            return HConstants.EMPTY_BYTE_ARRAY;
        }
        String text = value.asText();
        if (!value.isTextual() || text.length() % 2 != 0 || !text.matches("[0-9a-fA-F]*")) {
            throw new IllegalArgumentException("\"" + name + "\" of " + node.path("id").asText() + " is not hex");
        }
        return Bytes.fromHex(text);
    }

    /** The table's name; an error where it is missing or malformed. */
    TableName tableName() {
        return tableName(required("table", table, "Give the HBase table, as name or namespace:name."));
    }

    /** What is read, for people. */
    String named() {
        return tables == null ? "table " + table : tables.size() + " tables";
    }

    /** A table's name; an error where it is malformed. */
    static TableName tableName(String table) {
        try {
            return TableName.valueOf(table);
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("Option table = " + table + " is no HBase table name: "
                    + e.getMessage(), e);
        }
    }

    String requiredSnapshot() {
        return required("snapshot", snapshot, "With read = snapshot, name the HBase snapshot to read.");
    }

    String requiredRestoreDir() {
        return required("restoreDir", restoreDir, "With read = snapshot, name a folder on the file system of"
                + " hbase.rootdir and outside it; Admin.scratchDir makes one.");
    }

    private static String required(String name, String value, String remedy) {
        if (value == null || value.isEmpty()) {
            throw new IllegalArgumentException("Option " + name + " is missing. " + remedy);
        }
        return value;
    }
}
