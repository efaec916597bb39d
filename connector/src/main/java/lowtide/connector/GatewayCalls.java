package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Increment;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * The calls of HBase's Thrift gateway that Lowtide makes, answered by HBase's client in this JVM, so that a job needs no
 * gateway. Each does what the gateway's does ({@code ThriftHBaseServiceHandler}), with the same defaults: puts and deletes
 * are synced to the log, a column without qualifier is its whole family, and a timestamp is the open end of what is read.
 * What other calls there are is refused by name.
 */
public final class GatewayCalls {
    private static final ObjectMapper JSON = new ObjectMapper();
    /** The newest timestamp that there can be, excluded: of reads that name none. */
    private static final long NO_END = Long.MAX_VALUE;
    private static final Map<Integer, ResultScanner> SCANNERS = new ConcurrentHashMap<>();
    private static final AtomicInteger NUMBERS = new AtomicInteger();

    private GatewayCalls() {
    }

    /**
     * Carries out one call. Bytes are written as text of their values (ISO 8859-1), structures as objects with the names
     * that they have in Thrift.
     *
     * @param name of the call, such as {@code getRowWithColumns}
     * @param arguments JSON list, in the call's order
     * @return JSON: {@code {"result": ...}}; or {@code {"error": type, "text": ...}}, where the type is one of the
     *         gateway's: IOError, IllegalArgument, AlreadyExists
     */
    public static String call(Map<String, String> options, String name, String arguments) throws IOException {
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.set("result", result(Connections.get(options), name, JSON.readTree(arguments)));
        } catch (TableExistsException e) {
            failed(answer, "AlreadyExists", e);
        } catch (IOException e) {
            failed(answer, "IOError", e);
        } catch (IllegalArgumentException e) {
            failed(answer, "IllegalArgument", e);
        }
        return JSON.writeValueAsString(answer);
    }

    private static void failed(ObjectNode answer, String type, Exception error) {
        StringBuilder text = new StringBuilder();
        for (Throwable each = error; each != null; each = each.getCause()) {
            text.append(text.isEmpty() ? "" : "\nCaused by: ").append(each);
        }
        answer.put("error", type).put("text", text.toString());
    }

    private static JsonNode result(Connection connection, String name, JsonNode asked) throws IOException {
        return switch (name) {
            case "getTableNames" -> names(connection);
            case "getColumnDescriptors" -> families(connection, table(asked));
            case "createTable" -> createTable(connection, table(asked), asked.get(1));
            case "getRowWithColumns", "getRowWithColumnsTs" -> rows(connection, asked, List.of(bytes(asked.get(1))));
            case "getRowsWithColumns", "getRowsWithColumnsTs" -> rows(connection, asked, list(asked.get(1)));
            case "getVer", "getVerTs" -> versions(connection, asked);
            case "scannerOpenWithScan" -> open(connection, asked);
            case "scannerGetList" -> next(asked.get(0).intValue(), asked.get(1).intValue());
            case "scannerClose" -> close(asked.get(0).intValue());
            case "mutateRows", "mutateRowsTs" -> mutate(connection, asked);
            case "checkAndPut" -> JSON.getNodeFactory().booleanNode(
                    checkAndPut(connection, table(asked), List.of(checked(asked, 1))).get(0));
            case "checkAndPutAll" -> checkAndPutAll(connection, asked);
            case "atomicIncrement" -> increment(connection, asked);
            default -> throw new IllegalArgumentException(name + " is not among the calls that are answered without a gateway");
        };
    }

    private static JsonNode names(Connection connection) throws IOException {
        ArrayNode names = JSON.createArrayNode();
        try (Admin admin = connection.getAdmin()) {
            for (TableName name : admin.listTableNames()) {
                names.add(Latin.text(name.getName()));
            }
        }
        return names;
    }

    private static JsonNode families(Connection connection, TableName name) throws IOException {
        ObjectNode families = JSON.createObjectNode();
        try (Table table = connection.getTable(name)) {
            for (ColumnFamilyDescriptor family : table.getDescriptor().getColumnFamilies()) {
                String column = Latin.text(family.getName()) + ":";
                families.putObject(column)
                        .put("name", column)
                        .put("maxVersions", family.getMaxVersions())
                        .put("compression", family.getCompressionType().toString())
                        .put("inMemory", family.isInMemory())
                        .put("blockCacheEnabled", family.isBlockCacheEnabled())
                        .put("bloomFilterType", family.getBloomFilterType().toString())
                        .put("timeToLive", family.getTimeToLive());
            }
        }
        return families;
    }

    private static JsonNode createTable(Connection connection, TableName name, JsonNode families) throws IOException {
        TableDescriptorBuilder table = TableDescriptorBuilder.newBuilder(name);
        for (JsonNode family : families) {
            ColumnFamilyDescriptorBuilder descriptor = ColumnFamilyDescriptorBuilder
                    .newBuilder(column(bytes(family.get("name")))[0])
                    .setMaxVersions(family.get("maxVersions").intValue())
                    .setInMemory(family.get("inMemory").booleanValue())
                    .setBlockCacheEnabled(family.get("blockCacheEnabled").booleanValue())
                    .setBloomFilterType(BloomType.valueOf(family.get("bloomFilterType").textValue()));
            if (family.get("timeToLive").intValue() > 0) {
                descriptor.setTimeToLive(family.get("timeToLive").intValue());
            }
            table.setColumnFamily(descriptor.build());
        }
        try (Admin admin = connection.getAdmin()) {
            admin.createTable(table.build());
        }
        return JSON.nullNode();
    }

    /** {@code table, row or rows, columns or null[, timestamp], attributes}. */
    private static JsonNode rows(Connection connection, JsonNode asked, List<byte[]> rows) throws IOException {
        long end = asked.size() > 4 ? asked.get(3).longValue() : NO_END;
        List<Get> gets = new ArrayList<>();
        for (byte[] row : rows) {
            Get get = new Get(row).setTimeRange(0, end);
            for (byte[] each : list(asked.get(2))) {
                byte[][] column = column(each);
                if (column.length == 1) {
                    get.addFamily(column[0]);
                } else {
                    get.addColumn(column[0], column[1]);
                }
            }
            gets.add(get);
        }
        ArrayNode found = JSON.createArrayNode();
        try (Table table = connection.getTable(table(asked))) {
            for (Result result : table.get(gets)) {
                add(found, result);
            }
        }
        return found;
    }

    /** {@code table, row, column[, timestamp], number, attributes}: versions of one column, newest first. */
    private static JsonNode versions(Connection connection, JsonNode asked) throws IOException {
        boolean bounded = asked.size() > 5;
        Get get = new Get(bytes(asked.get(1)))
                .readVersions(asked.get(bounded ? 4 : 3).intValue())
                .setTimeRange(0, bounded ? asked.get(3).longValue() : NO_END);
        byte[][] column = column(bytes(asked.get(2)));
        if (column.length == 1) {
            get.addFamily(column[0]);
        } else {
            get.addColumn(column[0], column[1]);
        }
        ArrayNode found = JSON.createArrayNode();
        try (Table table = connection.getTable(table(asked))) {
            Result result = table.get(get);
            if (!result.isEmpty()) {
                for (Cell cell : result.rawCells()) {
                    found.add(cell(cell));
                }
            }
        }
        return found;
    }

    /** {@code table, scan, attributes}: the number by which {@link #next} and {@link #close} know the scanner. */
    private static JsonNode open(Connection connection, JsonNode asked) throws IOException {
        JsonNode wanted = asked.get(1);
        for (String other : List.of("filterString", "batchSize", "sortColumns", "reversed")) {
            if (wanted.path(other).asBoolean() || wanted.path(other).isTextual()) {
                throw new IllegalArgumentException("a scan with " + other + " is not answered without a gateway");
            }
        }
        Scan scan = new Scan().setTimeRange(0, wanted.hasNonNull("timestamp") ? wanted.get("timestamp").longValue() : NO_END);
        if (wanted.hasNonNull("startRow")) {
            scan.withStartRow(bytes(wanted.get("startRow")));
        }
        if (wanted.hasNonNull("stopRow")) {
            scan.withStopRow(bytes(wanted.get("stopRow")));
        }
        if (wanted.hasNonNull("caching")) {
            scan.setCaching(wanted.get("caching").intValue());
        }
        for (byte[] each : list(wanted.path("columns"))) {
            byte[][] column = column(each);
            if (column.length == 1) {
                scan.addFamily(column[0]);
            } else {
                scan.addColumn(column[0], column[1]);
            }
        }
        // The table is not closed: that would end nothing, and its scanner outlives this call.
        ResultScanner scanner = connection.getTable(table(asked)).getScanner(scan);
        int number = NUMBERS.incrementAndGet();
        SCANNERS.put(number, scanner);
        return JSON.getNodeFactory().numberNode(number);
    }

    private static JsonNode next(int number, int rows) throws IOException {
        ResultScanner scanner = SCANNERS.get(number);
        if (scanner == null) {
            throw new IllegalArgumentException("scanner " + number + " is not open");
        }
        ArrayNode found = JSON.createArrayNode();
        for (Result result : scanner.next(rows)) {
            add(found, result);
        }
        return found;
    }

    private static JsonNode close(int number) {
        ResultScanner scanner = SCANNERS.remove(number);
        if (scanner != null) {
            scanner.close();
        }
        return JSON.nullNode();
    }

    /** {@code table, rows with their mutations[, timestamp], attributes}; of each row first what is put, as the gateway does. */
    private static JsonNode mutate(Connection connection, JsonNode asked) throws IOException {
        long at = asked.size() > 3 ? asked.get(2).longValue() : HConstants.LATEST_TIMESTAMP;
        List<Put> puts = new ArrayList<>();
        List<Delete> deletes = new ArrayList<>();
        for (JsonNode each : asked.get(1)) {
            byte[] row = bytes(each.get("row"));
            Put put = new Put(row, at);
            Delete delete = new Delete(row);
            for (JsonNode mutation : each.get("mutations")) {
                byte[][] column = column(bytes(mutation.get("column")));
                Durability durability = mutation.get("writeToWAL").booleanValue() ? Durability.SYNC_WAL : Durability.SKIP_WAL;
                if (mutation.get("isDelete").booleanValue()) {
                    if (column.length == 1) {
                        delete.addFamily(column[0], at);
                    } else {
                        delete.addColumns(column[0], column[1], at);
                    }
                    delete.setDurability(durability);
                } else {
                    put.addColumn(column[0], qualifier(column), at, value(mutation));
                    put.setDurability(durability);
                }
            }
            if (!put.isEmpty()) {
                puts.add(put);
            }
            if (!delete.isEmpty()) {
                deletes.add(delete);
            }
        }
        try (Table table = connection.getTable(table(asked))) {
            if (!puts.isEmpty()) {
                table.put(puts);
            }
            if (!deletes.isEmpty()) {
                table.delete(deletes);
            }
        }
        return JSON.nullNode();
    }

    /**
     * {@code table, list of [row, column, expected value or null for absent, mutation]}: which were done. No call of the gateway's:
     * what {@code checkAndPut} does of each, sent together.
     */
    private static JsonNode checkAndPutAll(Connection connection, JsonNode asked) throws IOException {
        List<CheckAndMutate> all = new ArrayList<>();
        for (JsonNode each : asked.get(1)) {
            all.add(checked(each, 0));
        }
        ArrayNode done = JSON.createArrayNode();
        checkAndPut(connection, table(asked), all).forEach(done::add);
        return done;
    }

    private static List<Boolean> checkAndPut(Connection connection, TableName name, List<CheckAndMutate> all) throws IOException {
        try (Table table = connection.getTable(name)) {
            if (all.size() == 1) {
                return List.of(table.checkAndMutate(all.get(0)).isSuccess());
            }
            return table.checkAndMutate(all).stream().map(CheckAndMutateResult::isSuccess).toList();
        }
    }

    /** {@code row, column, expected value or null for absent, mutation}, from the given place on. */
    private static CheckAndMutate checked(JsonNode asked, int at) {
        byte[] row = bytes(asked.get(at));
        byte[][] checked = column(bytes(asked.get(at + 1)));
        byte[][] column = column(bytes(asked.get(at + 3).get("column")));
        Put put = new Put(row).setDurability(Durability.SYNC_WAL)
                .addColumn(column[0], qualifier(column), value(asked.get(at + 3)));
        CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row);
        if (asked.get(at + 2).isNull()) {
            check.ifNotExists(checked[0], qualifier(checked));
        } else {
            check.ifEquals(checked[0], qualifier(checked), bytes(asked.get(at + 2)));
        }
        return check.build(put);
    }

    /** {@code table, row, column, amount}. */
    private static JsonNode increment(Connection connection, JsonNode asked) throws IOException {
        byte[][] column = column(bytes(asked.get(2)));
        Increment increment = new Increment(bytes(asked.get(1)))
                .addColumn(column[0], qualifier(column), asked.get(3).longValue());
        try (Table table = connection.getTable(table(asked))) {
            Cell cell = table.increment(increment).rawCells()[0];
            return JSON.getNodeFactory().numberNode(
                    Bytes.toLong(CellUtil.cloneValue(cell)));
        }
    }

    private static void add(ArrayNode rows, Result result) {
        if (result.isEmpty()) {
            return;
        }
        ObjectNode row = rows.addObject().put("row", Latin.text(result.getRow()));
        ObjectNode columns = row.putObject("columns");
        for (Cell cell : result.rawCells()) {
            String name = Latin.text(CellUtil.cloneFamily(cell)) + ":" + Latin.text(CellUtil.cloneQualifier(cell));
            columns.set(name, cell(cell));
        }
    }

    private static ObjectNode cell(Cell cell) {
        return JSON.createObjectNode()
                .put("value", Latin.text(CellUtil.cloneValue(cell)))
                .put("timestamp", cell.getTimestamp());
    }

    private static TableName table(JsonNode asked) {
        return Options.tableName(new String(bytes(asked.get(0)), StandardCharsets.UTF_8));
    }

    /** Family and qualifier of {@code family:qualifier}; the family alone where there is no qualifier. */
    private static byte[][] column(byte[] column) {
        byte[][] parts = CellUtil.parseColumn(column);
        return parts.length > 1 && parts[1].length == 0 ? new byte[][] {parts[0]} : parts;
    }

    private static byte[] qualifier(byte[][] column) {
        return column.length > 1 ? column[1] : HConstants.EMPTY_BYTE_ARRAY;
    }

    private static byte[] value(JsonNode mutation) {
        return mutation.hasNonNull("value") ? bytes(mutation.get("value")) : HConstants.EMPTY_BYTE_ARRAY;
    }

    private static List<byte[]> list(JsonNode texts) {
        List<byte[]> found = new ArrayList<>();
        texts.forEach(text -> found.add(bytes(text)));
        return found;
    }

    private static byte[] bytes(JsonNode text) {
        return Latin.bytes(text.textValue());
    }
}
