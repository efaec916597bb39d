package lowtide.connector;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Durability;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Row;

/**
 * Single rows of plain tables, read and written by the driver, many at once: each operation has an answer of its own,
 * where the write of a DataFrame only counts. An operation on one row is atomic by itself; those of one call take
 * effect in any order.
 *
 * <p>HBase's client repeats what had no answer. A check that held is therefore reported as refused where its first
 * answer was lost: whoever asks must read again after a refusal before concluding anything.
 */
public final class Rows {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(Batches::thread);

    /** The actions of one table, and which operation each is for. */
    private static final class Share {
        private final List<Row> actions = new ArrayList<>();
        private final List<Integer> origins = new ArrayList<>();
        private Object[] results;
        private Batches sent;
    }

    private Rows() {
    }

    /**
     * Carries out operations and waits for all answers. Bytes are written as text of their values (ISO 8859-1).
     *
     * @param family of all cells
     * @param operations JSON list of {@code ["read", table, [row, ...]]}, {@code ["put", table, row, {column: value}]},
     *        {@code ["check", table, row, column, expected or null for absent, {column: value}]}, {@code ["remove", table, row]}
     * @return JSON list of the answers, in their order: to a read, for each row {@code {column: value}}; to a check
     *         whether it held; to a put and a removal true; a text where there was no answer, or not of all rows: why
     */
    public static String work(Map<String, String> options, String family, String operations) throws IOException {
        Connection connection = Connections.get(options);
        JsonNode asked = JSON.readTree(operations);
        String[] failures = new String[asked.size()];
        Map<TableName, Share> shares = new LinkedHashMap<>();
        for (int i = 0; i < asked.size(); i++) {
            try {
                List<Row> actions = actions(asked.get(i), Latin.bytes(family));
                TableName table = Options.tableName(asked.get(i).get(1).textValue());
                Share share = shares.computeIfAbsent(table, name -> new Share());
                for (Row action : actions) {
                    share.actions.add(action);
                    share.origins.add(i);
                }
            } catch (IllegalArgumentException e) {
                failures[i] = Batches.firstLine(e); // a row too long for HBase, say: the others go on
            }
        }
        shares.forEach((table, share) -> {
            share.results = new Object[share.actions.size()];
            share.sent = new Batches(THREADS, connection, table, share.actions, share.results, Batches.ALWAYS);
        });
        List<List<Object>> found = new ArrayList<>();
        for (int i = 0; i < asked.size(); i++) {
            found.add(new ArrayList<>());
        }
        for (Share share : shares.values()) {
            String failure = Objects.requireNonNullElse(share.sent.await(), "no answer");
            for (int k = 0; k < share.results.length; k++) {
                Object result = share.results[k];
                int origin = share.origins.get(k);
                if (result == null || result instanceof Throwable) {
                    failures[origin] = result == null ? failure : Batches.firstLine((Throwable) result);
                }
                found.get(origin).add(result);
            }
        }
        ArrayNode answers = JSON.createArrayNode();
        for (int i = 0; i < asked.size(); i++) {
            answer(answers, asked.get(i).get(0).textValue(), found.get(i), failures[i]);
        }
        return JSON.writeValueAsString(answers);
    }

    private static List<Row> actions(JsonNode operation, byte[] family) {
        String kind = operation.get(0).textValue();
        List<Row> actions = new ArrayList<>();
        if (kind.equals("read")) {
            operation.get(2).forEach(row -> actions.add(new Get(Latin.bytes(row.textValue())).addFamily(family)));
            return actions;
        }
        byte[] row = Latin.bytes(operation.get(2).textValue());
        switch (kind) {
            case "put":
                actions.add(put(row, family, operation.get(3)));
                break;
            case "check":
                byte[] column = Latin.bytes(operation.get(3).textValue());
                CheckAndMutate.Builder check = CheckAndMutate.newBuilder(row);
                String expected = operation.get(4).textValue();
                if (expected == null) {
                    check.ifNotExists(family, column);
                } else if (expected.isEmpty()) {
                    throw new IllegalArgumentException("check of row " + operation.get(2).textValue()
                            + " against an empty value, which HBase takes for an absent cell; ask for null");
                } else {
                    check.ifEquals(family, column, Latin.bytes(expected));
                }
                actions.add(check.build(put(row, family, operation.get(5))));
                break;
            case "remove":
                actions.add(new Delete(row).setDurability(Durability.SYNC_WAL));
                break;
            default:
                throw new IllegalArgumentException("unknown operation " + kind
                        + "; known are read, put, check, remove");
        }
        return actions;
    }

    /** As the Thrift gateway puts what the ledger's clients write, whatever durability the table has. */
    private static Put put(byte[] row, byte[] family, JsonNode cells) {
        if (!cells.isObject() || cells.isEmpty()) {
            throw new IllegalArgumentException("a put needs cells, {column: value}, and has " + cells);
        }
        Put put = new Put(row).setDurability(Durability.SYNC_WAL);
        cells.properties().forEach(
                cell -> put.addColumn(family, Latin.bytes(cell.getKey()), Latin.bytes(cell.getValue().textValue())));
        return put;
    }

    private static void answer(ArrayNode answers, String kind, List<Object> results, String failure) {
        if (failure != null) {
            answers.add(failure);
        } else if (kind.equals("read")) {
            ArrayNode rows = answers.addArray();
            results.forEach(result -> cells(rows.addObject(), (Result) result));
        } else if (kind.equals("check")) {
            answers.add(((CheckAndMutateResult) results.get(0)).isSuccess());
        } else {
            answers.add(true);
        }
    }

    private static void cells(ObjectNode row, Result result) {
        if (!result.isEmpty()) {
            for (Cell cell : result.rawCells()) {
                row.put(Latin.text(CellUtil.cloneQualifier(cell)), Latin.text(CellUtil.cloneValue(cell)));
            }
        }
    }
}
