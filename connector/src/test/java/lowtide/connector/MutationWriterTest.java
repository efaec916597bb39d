package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import org.junit.jupiter.api.Test;

/** What a task sends, and to which rows. */
class MutationWriterTest {
    private static final byte[] FAMILY = Bytes.toBytes("f");
    /** A byte longer than HBase takes a row. */
    private static final byte[] TOO_LONG = new byte[HConstants.MAX_ROW_LENGTH + 1];

    private final List<Put> sent = new ArrayList<>();
    private final Connection connection = (Connection) proxy(Connection.class, proxy(Table.class, null));
    private final MutationWriter writer = new MutationWriter(new Options(Map.of("table", "orders")),
            new int[] {0, 1, 2, 3, 4, 5, 6, -1, -1, -1, -1}, Durability.SYNC_WAL, connection, connection);

    private Object proxy(Class<?> type, Object table) {
        return Proxy.newProxyInstance(MutationWriterTest.class.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getConfiguration" -> new Configuration(false);
                    case "getTable" -> table;
                    case "batch" -> batch((List<?>) arguments[0], (Object[]) arguments[1]);
                    default -> null;
                });
    }

    private Object batch(List<?> actions, Object[] results) {
        for (Object action : actions) {
            Put put = (Put) (Row) action;
            if (put.isEmpty()) {
                throw new IllegalArgumentException("No columns to insert"); // as HBase's client, of the whole batch
            }
            sent.add(put);
        }
        Arrays.fill(results, Result.EMPTY_RESULT);
        return null;
    }

    private void put(byte[] row, byte[] family, String value) throws IOException {
        InternalRow record = new GenericInternalRow(new Object[] {UTF8String.fromString("put"),
            UTF8String.fromString("west"), row, family, Bytes.toBytes("q"), 100L, Bytes.toBytes(value)});
        writer.write(record);
    }

    private JsonNode report() throws IOException {
        WriteReport.keep("w", (WriteReport) writer.commit());
        return new ObjectMapper().readTree(WriteReport.take("w")).get(0);
    }

    /**
     * What HBase's client does not take fails by itself, also where more comes for the same row; it is not written to
     * the row before it, and its neighbours are sent.
     */
    @Test
    void whatHBaseDoesNotTakeFailsAlone() throws IOException {
        put(Bytes.toBytes("before"), FAMILY, "good");
        put(TOO_LONG, FAMILY, "bad");
        put(TOO_LONG, FAMILY, "bad");
        put(Bytes.toBytes("family"), new byte[200], "bad");
        put(Bytes.toBytes("after"), FAMILY, "good");
        JsonNode report = report();
        assertEquals(List.of("before", "after"), sent.stream().map(each -> Bytes.toString(each.getRow())).toList());
        sent.forEach(each -> assertEquals("{f=[good]}", values(each)));
        assertEquals(List.of(2, 3), List.of(report.get("done").asInt(), report.get("failed").asInt()));
        assertTrue(report.get("failure").asText().contains("Row length"), report.toString());
    }

    private static String values(Put put) {
        return Map.of("f", put.get(FAMILY, Bytes.toBytes("q")).stream()
                .map(cell -> Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneValue(cell))).toList()).toString();
    }
}
