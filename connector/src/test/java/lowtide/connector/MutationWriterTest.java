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
import org.apache.hadoop.hbase.quotas.RpcThrottlingException;
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
    /** How many actions a quota lets through in one request. */
    private int allowed = Integer.MAX_VALUE;
    /** What it says of the time to wait. */
    private String wait = "0ms";
    private int requests;
    /** Whether there is another token than the one that the task began with. */
    private boolean replaced;
    private final Connection connection = (Connection) proxy(Connection.class, proxy(Table.class, null));
    private final MutationWriter writer;

    MutationWriterTest() throws IOException {
        writer = writing(() -> connection);
    }

    private MutationWriter writing(MutationWriter.Connected connected) throws IOException {
        return new MutationWriter(new Options(Map.of("table", "orders")),
                new int[] {0, 1, 2, 3, 4, 5, 6, -1, -1, -1, -1}, Durability.SYNC_WAL, connected, connected);
    }

    private Object proxy(Class<?> type, Object table) {
        return Proxy.newProxyInstance(MutationWriterTest.class.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getConfiguration" -> settings();
                    case "getTable" -> table;
                    case "batch" -> batch((List<?>) arguments[0], (Object[]) arguments[1]);
                    default -> null;
                });
    }

    private static Configuration settings() {
        Configuration settings = new Configuration(false);
        settings.set(HConstants.HBASE_CLIENT_OPERATION_TIMEOUT, "60000");
        settings.set(HConstants.HBASE_CLIENT_PAUSE, "1");
        settings.set(HConstants.HBASE_CLIENT_RETRIES_NUMBER, "3");
        return settings;
    }

    private Object batch(List<?> actions, Object[] results) throws IOException {
        requests++;
        if (actions.size() > allowed) {
            Arrays.fill(results, new RpcThrottlingException(
                    "org.apache.hadoop.hbase.quotas.RpcThrottlingException: number of write requests exceeded - wait " + wait
                            + "\n\tat a.Server"));
            throw new IOException("some failed");
        }
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

    /** A quota that lets three through at once, and refuses what is more, has all of a batch written, each once. */
    @Test
    void whatAQuotaThrottlesIsSentInSmallerParts() throws IOException {
        allowed = 3;
        for (int row = 0; row < 100; row++) {
            put(Bytes.toBytes("r" + row), FAMILY, "v");
        }
        JsonNode report = report();
        assertEquals(100, report.get("done").asInt(), report.toString());
        assertEquals(100, sent.size());
        assertEquals(100, sent.stream().map(each -> Bytes.toString(each.getRow())).distinct().count());
    }

    /** One that would have the task wait for a day ends it at once, with table, quota and remedy; no batch follows. */
    @Test
    void aQuotaThatLetsNothingThroughIsNamed() throws IOException {
        allowed = 0;
        wait = "23hrs, 59mins, 5sec, 0ms";
        for (int row = 0; row < 2500; row++) {
            put(Bytes.toBytes("r" + row), FAMILY, "v");
        }
        JsonNode report = report();
        assertEquals(List.of(0, 2500), List.of(report.get("done").asInt(), report.get("failed").asInt()));
        for (String part : List.of("writes to orders (number of write requests exceeded - wait 23hrs", "0ms)", "set_quota")) {
            assertTrue(report.get("failure").asText().contains(part), report.toString());
        }
        assertEquals(1, requests);
    }

    /** A token that was replaced lets nobody in any more: each try takes the connection that there is then. */
    @Test
    void aTaskGoesOnByTheTokenThatCameMeanwhile() throws IOException {
        Connection old = (Connection) Proxy.newProxyInstance(MutationWriterTest.class.getClassLoader(),
                new Class<?>[] {Connection.class}, (proxy, method, arguments) -> {
                    if (method.getName().equals("getConfiguration")) {
                        return settings();
                    }
                    replaced = true;
                    throw new IOException("the token is expired");
                });
        MutationWriter lasting = writing(() -> replaced ? connection : old);
        lasting.write(new GenericInternalRow(new Object[] {UTF8String.fromString("put"), UTF8String.fromString("west"),
            Bytes.toBytes("row"), FAMILY, Bytes.toBytes("q"), 100L, Bytes.toBytes("v")}));
        WriteReport.keep("lasting", (WriteReport) lasting.commit());
        JsonNode report = new ObjectMapper().readTree(WriteReport.take("lasting")).get(0);
        assertEquals(List.of(1, 0), List.of(report.get("done").asInt(), report.get("failed").asInt()), report.toString());
        assertTrue(replaced, "it began with the old one");
    }

    /** At a rate requests are small, and all mutations are paid for before they are sent. */
    @Test
    void atARateRequestsAreSmall() throws IOException {
        MutationWriter paced = new MutationWriter(new Options(Map.of("table", "orders", "perSecond", "50", "gate", "small")),
                new int[] {0, 1, 2, 3, 4, 5, 6, -1, -1, -1, -1}, Durability.SYNC_WAL, () -> connection, () -> connection);
        long begin = System.nanoTime();
        for (int row = 0; row < 100; row++) {
            paced.write(new GenericInternalRow(new Object[] {UTF8String.fromString("put"), UTF8String.fromString("west"),
                Bytes.toBytes("r" + row), FAMILY, Bytes.toBytes("q"), 100L, Bytes.toBytes("v")}));
        }
        WriteReport.keep("paced", (WriteReport) paced.commit());
        assertTrue(System.nanoTime() - begin >= 1_900_000_000L, "the last 2 are let in after 1.96 s");
        assertEquals(100, new ObjectMapper().readTree(WriteReport.take("paced")).get(0).get("done").asInt());
        assertEquals(List.of(100, 50), List.of(sent.size(), requests));
    }

    /** Of mutations that go together because they are of one row, no more are sent at once than are paid for. */
    @Test
    void atARateOneRowIsSentInPortions() throws IOException {
        MutationWriter paced = new MutationWriter(new Options(Map.of("table", "orders", "perSecond", "100", "gate", "row")),
                new int[] {0, 1, 2, 3, 4, 5, 6, -1, -1, -1, -1}, Durability.SYNC_WAL, () -> connection, () -> connection);
        for (int column = 0; column < 20; column++) {
            paced.write(new GenericInternalRow(new Object[] {UTF8String.fromString("put"), UTF8String.fromString("west"),
                Bytes.toBytes("row"), FAMILY, Bytes.toBytes("q" + column), 100L, Bytes.toBytes("v")}));
        }
        WriteReport.keep("row", (WriteReport) paced.commit());
        assertEquals(List.of(5, 5, 5, 5), sent.stream().map(Put::size).toList());
        assertEquals(20, new ObjectMapper().readTree(WriteReport.take("row")).get(0).get("done").asInt());
    }

    private static String values(Put put) {
        return Map.of("f", put.get(FAMILY, Bytes.toBytes("q")).stream()
                .map(cell -> Bytes.toString(org.apache.hadoop.hbase.CellUtil.cloneValue(cell))).toList()).toString();
    }
}
