package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.omid.transaction.Snapshots;
import org.apache.omid.transaction.TTable;
import org.apache.omid.transaction.Transaction;

/** Cells: at a read point through Omid, or raw with every version and delete marker; and single raw writes. */
final class Reader {

    private final Store store;

    Reader(Store store) {
        this.store = store;
    }

    void register(Commands commands) {
        commands.add("begin", request -> new JsonPrimitive(store.oracle().getNewStartTimestamp().get()));
        commands.add("read", this::read);
        commands.add("count", this::count);
        commands.add("raw", this::raw);
        commands.add("put", this::put);
        commands.add("delete_version", this::deleteVersion);
    }

    private JsonElement read(JsonObject request) throws Exception {
        JsonArray cells = new JsonArray();
        String name = request.get("table").getAsString();
        long timestamp = request.get("timestamp").getAsLong();
        try (TTable table = Snapshots.table(store.table(name), request.get("heal").getAsBoolean())) {
            List<byte[]> rows = rows(name);
            if (rows.stream().allMatch(Reader::isText)) {
                try (ResultScanner shown = table.getScanner(at(timestamp), new Scan())) {
                    shown.forEach(row -> add(cells, row));
                }
            } else {
                for (byte[] row : rows) {
                    add(cells, table.get(at(timestamp), new Get(row)));
                }
            }
        }
        return cells;
    }

    private Transaction at(long timestamp) throws Exception {
        return Snapshots.at(timestamp, store.crashPoints().manager());
    }

    private static void add(JsonArray cells, Result row) {
        if (!row.isEmpty()) {
            for (Cell cell : row.rawCells()) {
                cells.add(Json.array(
                        CellUtil.cloneRow(cell),
                        CellUtil.cloneFamily(cell),
                        CellUtil.cloneQualifier(cell),
                        CellUtil.cloneValue(cell)));
            }
        }
    }

    private List<byte[]> rows(String table) throws IOException {
        List<byte[]> rows = new ArrayList<>();
        try (Table plain = store.table(table);
                ResultScanner found = plain.getScanner(
                        new Scan().setFilter(new FirstKeyOnlyFilter()).setCaching(1000))) {
            found.forEach(row -> rows.add(row.getRow()));
        }
        return rows;
    }

    /**
     * Whether Omid's scanner knows the row from every other one: it keeps the family tombstones that it has met by the
     * row's key as text, in which all bytes that are no UTF-8 are the same. Its Get meets one row only.
     */
    private static boolean isText(byte[] row) {
        String text = Bytes.toString(row);
        return Arrays.equals(row, Bytes.toBytes(text)) && text.indexOf('\uFFFD') < 0;
    }

    /** How many cells a read point shows: for measurements, without the way back over the pipe. */
    private JsonElement count(JsonObject request) throws Exception {
        long cells = 0;
        try (TTable table = Snapshots.table(store.table(request.get("table").getAsString()), false);
                ResultScanner rows = table.getScanner(
                        Snapshots.at(request.get("timestamp").getAsLong(), store.crashPoints().manager()),
                        new Scan().setCaching(1000))) {
            for (Result row : rows) {
                cells += row.rawCells().length;
            }
        }
        return new JsonPrimitive(cells);
    }

    private JsonElement raw(JsonObject request) throws Exception {
        JsonArray cells = new JsonArray();
        try (Table table = store.table(request.get("table").getAsString());
                ResultScanner rows = table.getScanner(new Scan().setRaw(true).readAllVersions().setCaching(1000))) {
            for (Result row : rows) {
                for (Cell cell : row.rawCells()) {
                    cells.add(Json.cell(cell, kind(cell)));
                }
            }
        }
        return cells;
    }

    private static String kind(Cell cell) {
        switch (cell.getType()) {
            case Put:
                return "put";
            case Delete:
                return "delete";
            case DeleteColumn:
                return "delete_column";
            case DeleteFamily:
                return "delete_family";
            case DeleteFamilyVersion:
                return "delete_family_version";
            default:
                throw new IllegalArgumentException("unknown type of the cell " + cell);
        }
    }

    private JsonElement put(JsonObject request) throws Exception {
        try (Table table = store.table(request.get("table").getAsString())) {
            table.put(new Put(Json.bytes(request, "row"))
                    .addColumn(
                            Json.bytes(request, "family"),
                            Json.bytes(request, "qualifier"),
                            request.get("timestamp").getAsLong(),
                            Json.bytes(request, "value")));
        }
        return null;
    }

    private JsonElement deleteVersion(JsonObject request) throws Exception {
        try (Table table = store.table(request.get("table").getAsString())) {
            table.delete(new Delete(Json.bytes(request, "row"))
                    .addColumn(
                            Json.bytes(request, "family"),
                            Json.bytes(request, "qualifier"),
                            request.get("timestamp").getAsLong()));
        }
        return null;
    }
}
