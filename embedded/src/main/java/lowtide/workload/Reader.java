package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.omid.transaction.Snapshots;
import org.apache.omid.transaction.TTable;

/** Cells: at a snapshot through Omid, or raw with every version and delete marker; and single raw writes. */
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
        try (TTable table = Snapshots.table(
                        store.table(request.get("table").getAsString()),
                        request.get("heal").getAsBoolean());
                ResultScanner rows = table.getScanner(
                        Snapshots.at(request.get("timestamp").getAsLong(), store.crashPoints().manager()),
                        new Scan())) {
            for (Result row : rows) {
                for (Cell cell : row.rawCells()) {
                    cells.add(Json.array(
                            CellUtil.cloneRow(cell),
                            CellUtil.cloneFamily(cell),
                            CellUtil.cloneQualifier(cell),
                            CellUtil.cloneValue(cell)));
                }
            }
        }
        return cells;
    }

    /** How many cells a snapshot shows: for measurements, without the way back over the pipe. */
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
