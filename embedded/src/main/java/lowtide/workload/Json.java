package lowtide.workload;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;

/** Bytes in JSON: one character a byte (ISO 8859-1), so that text stays readable and nothing is lost. */
final class Json {

    private Json() {}

    static byte[] bytes(JsonElement text) {
        return text.getAsString().getBytes(StandardCharsets.ISO_8859_1);
    }

    static byte[] bytes(JsonObject object, String name) {
        if (!object.has(name)) {
            throw new IllegalArgumentException("the request has no \"" + name + "\"");
        }
        return bytes(object.get(name));
    }

    static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    static JsonArray array(Object... elements) {
        JsonArray array = new JsonArray(elements.length);
        for (Object element : elements) {
            array.add(element(element));
        }
        return array;
    }

    static JsonElement element(Object value) {
        if (value instanceof JsonElement) {
            return (JsonElement) value;
        }
        if (value instanceof byte[]) {
            return new JsonPrimitive(text((byte[]) value));
        }
        if (value instanceof Number) {
            return new JsonPrimitive((Number) value);
        }
        if (value instanceof Boolean) {
            return new JsonPrimitive((Boolean) value);
        }
        return new JsonPrimitive(value.toString());
    }

    /** [row, family, qualifier, timestamp, kind, value]. */
    static JsonArray cell(Cell cell, String kind) {
        return array(
                CellUtil.cloneRow(cell),
                CellUtil.cloneFamily(cell),
                CellUtil.cloneQualifier(cell),
                cell.getTimestamp(),
                kind,
                CellUtil.cloneValue(cell));
    }
}
