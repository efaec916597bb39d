package lowtide.connector;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The views of {@link CatalogScan} for the driver itself: a job asks for them many times, and a query for a few rows takes
 * longer than HBase does to tell them.
 */
public final class Catalog {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Catalog() {
    }

    /**
     * The rows of the view {@code tables}, {@code regions} or {@code snapshots}, as they are now.
     *
     * @param tables of the view {@code regions}: those meant; one that is not there is an error where it is the only
     *     one, else it has no rows. Else empty
     * @return JSON list of objects with the view's columns; bytes in hex
     */
    public static String look(Map<String, String> options, String view, List<String> tables)
            throws JsonProcessingException {
        Map<String, String> asked = new HashMap<>(options);
        asked.put("view", view);
        if (tables.size() == 1) {
            asked.put("table", tables.get(0));
        } else if (!tables.isEmpty()) {
            asked.put("tables", JSON.writeValueAsString(tables.stream().map(table -> Map.of("table", table)).toList()));
        }
        CatalogScan scan = new CatalogScan(new Options(asked));
        StructField[] fields = scan.readSchema().fields();
        List<Map<String, Object>> rows = new ArrayList<>();
        for (InternalRow row : scan.rows()) {
            Map<String, Object> told = new HashMap<>();
            for (int i = 0; i < fields.length; i++) {
                told.put(fields[i].name(), plain(row.get(i, fields[i].dataType())));
            }
            rows.add(told);
        }
        return JSON.writeValueAsString(rows);
    }

    /** A value as Spark keeps it, as JSON has it. */
    private static Object plain(Object value) {
        if (value instanceof byte[] bytes) {
            return Bytes.toHex(bytes);
        }
        if (value instanceof UTF8String text) {
            return text.toString();
        }
        if (value instanceof ArrayData array) {
            return Arrays.stream(array.toObjectArray(DataTypes.StringType)).map(Catalog::plain).toList();
        }
        if (value instanceof MapData map) {
            Map<Object, Object> texts = new HashMap<>();
            for (int i = 0; i < map.numElements(); i++) {
                texts.put(plain(map.keyArray().getUTF8String(i)), plain(map.valueArray().getUTF8String(i)));
            }
            return texts;
        }
        return value;
    }
}
