package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellComparator;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/** Cells that come into a table past its log, as files: so a backup is put back into a table that stays what it is. */
final class BulkLoad {

    private final Configuration configuration;

    BulkLoad(Store store) {
        this.configuration = store.connection.getConfiguration();
    }

    void register(Commands commands) {
        commands.add("bulk_load", this::load);
    }

    /** Each cell is {@code [row, family, qualifier, timestamp, value]}. A file a family; HBase cuts it at its regions. */
    private JsonElement load(JsonObject request) throws Exception {
        Path root = CommonFSUtils.getRootDir(configuration);
        FileSystem files = root.getFileSystem(configuration);
        Path folder = new Path(root.getParent(), "bulk-" + System.nanoTime());
        for (Map.Entry<String, TreeSet<Cell>> family : families(request.getAsJsonArray("cells")).entrySet()) {
            write(files, new Path(new Path(folder, family.getKey()), "cells"), family.getValue());
        }
        try {
            BulkLoadHFiles.create(configuration).bulkLoad(TableName.valueOf(request.get("table").getAsString()), folder);
        } finally {
            files.delete(folder, true);
        }
        return null;
    }

    private static Map<String, TreeSet<Cell>> families(JsonArray cells) {
        Map<String, TreeSet<Cell>> families = new TreeMap<>();
        for (JsonElement each : cells) {
            JsonArray cell = each.getAsJsonArray();
            byte[] family = Json.bytes(cell.get(1));
            families.computeIfAbsent(Bytes.toString(family), f -> new TreeSet<>(CellComparator.getInstance()))
                    .add(new KeyValue(
                            Json.bytes(cell.get(0)),
                            family,
                            Json.bytes(cell.get(2)),
                            cell.get(3).getAsLong(),
                            Json.bytes(cell.get(4))));
        }
        return families;
    }

    private void write(FileSystem files, Path path, Iterable<Cell> cells) throws IOException {
        try (HFile.Writer writer = HFile.getWriterFactoryNoCache(configuration)
                .withPath(files, path)
                .withFileContext(new HFileContextBuilder().build())
                .create()) {
            for (Cell cell : cells) {
                writer.append(cell);
            }
        }
    }
}
