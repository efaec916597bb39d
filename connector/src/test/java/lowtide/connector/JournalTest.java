package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** A read at a read point beside a pruning that lets go of the journal's row: on tables of a few cells. */
class JournalTest {
    private static final long START = 100_000_000;
    private static final long COMMIT = START + 1;
    /** More than a look asks. */
    private static final int QUESTIONS = 8;

    private final Options options = new Options(Map.of("table", "orders", "asOf", "200000000"));
    /** How many questions were answered; at which of them the horizon moves, and at which the row goes. */
    private int answered;
    private int moves;
    private int goes;

    private final Connection connection = proxy(Connection.class, null);

    /** Whenever the row goes, the horizon has moved before: the read finds it, or fails, and never passes it over. */
    @Test
    void aRowThatGoesIsFoundOrFailsTheRead() throws IOException {
        int found = 0;
        for (moves = 0; moves <= QUESTIONS; moves++) {
            for (goes = moves; goes <= QUESTIONS; goes++) {
                answered = 0;
                try {
                    assertEquals(COMMIT, new Journal(options).read(connection, START), "a commit is passed over");
                    found++;
                } catch (IllegalStateException undecided) {
                    assertTrue(undecided.getMessage().contains("has let go of its time"), undecided.getMessage());
                }
            }
        }
        assertTrue(found > QUESTIONS, "where it goes late it is found");
    }

    /** What was let go of before it was asked for fails the read. */
    @Test
    void whatWasLetGoOfIsUndecided() {
        assertThrows(IllegalStateException.class, () -> new Journal(options).read(connection, START));
    }

    private <T> T proxy(Class<T> type, TableName table) {
        return type.cast(Proxy.newProxyInstance(JournalTest.class.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getAdmin" -> proxy(Admin.class, null);
                    case "getTable" -> proxy(Table.class, (TableName) arguments[0]);
                    case "tableExists" -> true;
                    case "get" -> arguments[0] instanceof List<?> several
                            ? several.stream().map(get -> answer(table, (Get) get)).toArray(Result[]::new)
                            : answer(table, (Get) arguments[0]);
                    default -> null;
                }));
    }

    private Result answer(TableName table, Get get) {
        boolean moved = answered >= moves;
        boolean gone = answered >= goes;
        answered++;
        String remembered = "{\"there\": true, \"horizon\": " + (moved ? START : 0) + "}";
        if (table.getNameAsString().equals(options.stateTable)) {
            return Bytes.equals(get.getRow(), Bytes.toBytes("journal"))
                    ? of(get, Records.FAMILY, Records.VALUE, Bytes.toBytes(remembered)) : Result.EMPTY_RESULT;
        }
        if (!table.getNameAsString().equals(options.journalTable)) {
            return Result.EMPTY_RESULT;
        }
        if (Bytes.equals(get.getRow(), Journal.OWN_ROW)) {
            return of(get, Journal.FAMILY, Records.VALUE, Bytes.toBytes(remembered));
        }
        return gone ? Result.EMPTY_RESULT : of(get, Journal.FAMILY, Omid.COMMIT, Bytes.toBytes(COMMIT));
    }

    private static Result of(Get get, byte[] family, byte[] qualifier, byte[] value) {
        return Result.create(List.of(new KeyValue(get.getRow(), family, qualifier, 1, value)));
    }
}
