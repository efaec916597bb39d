package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Get;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** Claims on a state table of one cell. */
class ClaimsTest {
    private static final String OPTION =
            "[{\"table\": \"LOWTIDE_STATE\", \"row\": \"6f\", \"family\": \"s\", \"qualifier\": \"epoch\", \"value\":"
            + " \"37\"}]";
    private String stands = "7";
    private long written = 1;
    private int questions;

    private final Connection connection = (Connection) proxy(Connection.class, proxy(Table.class, null));

    /** A table that gives the cell, or a connection that gives that table. */
    private Object proxy(Class<?> type, Object table) {
        return Proxy.newProxyInstance(ClaimsTest.class.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> switch (method.getName()) {
                    case "getTable" -> table;
                    case "get" -> asked(arguments[0]);
                    default -> null;
                });
    }

    private Object asked(Object what) {
        questions++;
        return what instanceof List<?> gets ? gets.stream().map(get -> result((Get) get)).toArray(Result[]::new)
                : result((Get) what);
    }

    private Result result(Get get) {
        return stands == null ? Result.EMPTY_RESULT : Result.create(List.of(cell(get)));
    }

    private Cell cell(Get get) {
        byte[] family = get.familySet().iterator().next();
        return new KeyValue(get.getRow(), family, get.getFamilyMap().get(family).first(), written,
                Bytes.toBytes(stands));
    }

    /** A batch is sent while the claim stands; once it has changed, nothing more, also if it should change back. */
    @Test
    void aWriterStopsForGoodWhenItsClaimHasChanged() throws IOException {
        Claims claims = new Claims(Claims.parse(OPTION));
        assertNull(claims.read(connection).refusal());
        stands = "8";
        String text = "not tried: another run, or a restore, has taken over (row o of LOWTIDE_STATE has changed)";
        assertEquals(text, claims.read(connection).refusal());
        stands = "7";
        assertEquals(text, claims.read(connection).refusal());
    }

    /** A claim that is gone stands no more. */
    @Test
    void aClaimThatIsGoneStandsNoMore() throws IOException {
        stands = null;
        assertTrue(new Claims(Claims.parse(OPTION)).read(connection).refusal().contains("has taken over"));
    }

    /** Where nothing was, nothing must have come: a pause is such a cell, and says so itself. */
    @Test
    void aWriterStopsWhenACellCameThatWasNotThere() throws IOException {
        Claims claims = new Claims(Claims.parse(OPTION.replace("\"37\"", "null, \"lost\": \"a pause began\"")));
        stands = null;
        assertNull(claims.read(connection).refusal());
        stands = "[]";
        assertEquals("not tried: a pause began (row o of LOWTIDE_STATE has changed)",
                claims.read(connection).refusal());
    }

    /**
     * A table that was restored, or made anew, is not the one that was read: the time of its state is another, whatever
     * the state.
     */
    @Test
    void aWriterStopsForGoodWhenItsTableHasComeBack() throws IOException {
        Claims claims = new Claims(Claims.parse("[{\"table\": \"orders\", \"stated\": 70}]"));
        written = 70;
        assertNull(claims.read(connection).refusal());
        written = 60;
        String text = "not tried: orders was restored, made anew, or disabled and enabled while the run went on";
        assertEquals(text, claims.read(connection).refusal());
        written = 70;
        assertEquals(text, claims.read(connection).refusal());
    }

    /** Of several each has to stand, the last too. */
    @Test
    void everyClaimHasToStand() throws IOException {
        String both = OPTION.replace("]", ", {\"table\": \"orders\", \"stated\": 70}]");
        assertTrue(new Claims(Claims.parse(both)).read(connection).refusal().contains("orders was restored"));
    }

    /** However many there are, of one table they are one question: the first would be stale before the last. */
    @Test
    void thoseOfATableAreAskedTogether() throws IOException {
        String all = IntStream.range(0, 200).mapToObj(n -> String.format(Locale.ROOT, "%04x", n))
                .map(row -> OPTION.substring(1, OPTION.length() - 1).replace("6f", row))
                .collect(Collectors.joining(", ", "[", "]"));
        assertNull(new Claims(Claims.parse(all)).read(connection).refusal());
        assertEquals(1, questions);
        String another = all.replace("\"0063\", \"family\": \"s\", \"qualifier\": \"epoch\", \"value\": \"37\"",
                "\"0063\", \"family\": \"s\", \"qualifier\": \"epoch\", \"value\": \"38\"");
        assertEquals("not tried: another run, or a restore, has taken over (row \\x00c of LOWTIDE_STATE has changed)",
                new Claims(Claims.parse(another)).read(connection).refusal());
    }

    /** What was read too long ago permits nothing: the process may have slept since. */
    @Test
    void anOldLookPermitsNothing() throws IOException {
        Batches.Permit permit = new Claims(Claims.parse(OPTION), -1).read(connection);
        assertTrue(permit.refusal().contains("have passed since the claim was read (row o of LOWTIDE_STATE)"));
        assertNull(new Claims(List.of(), -1).read(connection).refusal(), "without claims nothing is looked at");
    }

    /** A claim is as old as the question: what was true when the server looked may be long over when its answer comes. */
    @Test
    void aClaimIsAsOldAsTheQuestion() throws IOException {
        Claims.Claim slow = new Claims.Claim() {
            @Override
            public boolean stands(Connection connection) throws IOException {
                Pause.millis(200, "waiting for an answer");
                return true;
            }

            @Override
            public String lost() {
                return "it is gone";
            }
        };
        String refusal = new Claims(List.of(slow), 150).read(connection).refusal();
        assertNotNull(refusal, "the batch may be sent");
        assertTrue(refusal.contains("have passed since the claim was read"), refusal);
    }

    /** A claim that lacks something is refused when the write is set up. */
    @Test
    void aMalformedClaimIsRefused() {
        String text = assertThrows(IllegalArgumentException.class, () ->
                Claims.parse("[{\"table\": \"t\"}]")).getMessage();
        assertTrue(text.contains("a claim has no text \"row\""), text);
    }
}
