package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.LongPredicate;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.LiteralValue;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.Test;

class PushdownTest {
    private static Pushdown versions() {
        return new Pushdown(new Options(Map.of("table", "t")));
    }

    private static Pushdown cells(String raw) {
        return new Pushdown(new Options(Map.of("table", "t", "view", "cells", "raw", raw)));
    }

    private static Expression column(String name) {
        return Expressions.column(name);
    }

    private static Expression number(long value) {
        return new LiteralValue<>(value, DataTypes.LongType);
    }

    private static Expression bytes(String value) {
        return new LiteralValue<>(Bytes.toBytes(value), DataTypes.BinaryType);
    }

    private static Predicate is(String name, Expression... children) {
        return new Predicate(name, children);
    }

    private static boolean passes(Pushdown pushdown, long timestamp, long commit) {
        return timestamp >= pushdown.from && timestamp < pushdown.to
                && pushdown.filter().test(timestamp, commit, Omid.NONE);
    }

    private static void agree(Predicate predicate, LongPredicate wanted) {
        Pushdown pushdown = versions();
        assertTrue(pushdown.take(predicate), predicate.toString());
        for (long timestamp = 0; timestamp < 400; timestamp++) {
            assertEquals(wanted.test(timestamp), passes(pushdown, timestamp, 1000), predicate + " at " + timestamp);
        }
    }

    /** Comparisons with either timestamp are a time range that keeps exactly the right cells. */
    @Test
    void comparisonsAreATimeRange() {
        for (long c : new long[] {-70, -1, 0, 1, 49, 50, 51, 100, 149, 150, 399, 1000, Long.MAX_VALUE}) {
            agree(is(">=", column("start_ts"), number(c)), s -> s / 50 * 50 >= c);
            agree(is(">", column("start_ts"), number(c)), s -> s / 50 * 50 > c);
            agree(is("<", column("start_ts"), number(c)), s -> s / 50 * 50 < c);
            agree(is("<=", column("start_ts"), number(c)), s -> s / 50 * 50 <= c);
            agree(is("=", column("start_ts"), number(c)), s -> s / 50 * 50 == c);
            agree(is("<>", column("start_ts"), number(c)), s -> s / 50 * 50 != c);
            agree(is(">=", column("timestamp"), number(c)), s -> s >= c);
            agree(is(">", column("timestamp"), number(c)), s -> s > c);
            agree(is("<", number(c), column("timestamp")), s -> c < s);
            agree(is("<=", column("timestamp"), number(c)), s -> s <= c);
            agree(is("=", column("timestamp"), number(c)), s -> s == c);
        }
        agree(is("IN", column("start_ts"), number(100), number(300)), s -> s / 50 == 2 || s / 50 == 6);
        agree(is("IN", column("timestamp"), number(101), number(300)), s -> s == 101 || s == 300);
        agree(is("NOT", is("IN", column("start_ts"), number(100))), s -> s / 50 != 2);
    }

    /** The cleanup's question has a filter of its own, whichever half stands first. */
    @Test
    void suspectsAreRecognised() {
        Predicate isNull = is("IS_NULL", column("commit_ts"));
        Predicate among = is("IN", column("start_ts"), number(100), number(200));
        for (Predicate predicate : new Predicate[] {is("OR", isNull, among), is("OR", among, isNull)}) {
            Pushdown pushdown = versions();
            assertTrue(pushdown.take(is("<", column("start_ts"), number(1000))));
            assertTrue(pushdown.take(predicate));
            assertTrue(pushdown.filter() instanceof RowFilter.Suspects, "the time range takes no part in the filter");
            assertTrue(passes(pushdown, 349, Omid.NONE));
            assertTrue(passes(pushdown, 149, 500));
            assertFalse(passes(pushdown, 150, 500));
        }
    }

    /** Conditions keep SQL's three values: a null commit is neither equal nor unequal. */
    @Test
    void nullIsNeitherTrueNorFalse() {
        Predicate equal = is("=", column("commit_ts"), number(100));
        Pushdown unequal = versions();
        assertTrue(unequal.take(is("NOT", equal)));
        assertFalse(unequal.filter().test(50, Omid.NONE, Omid.NONE));
        assertTrue(unequal.filter().test(50, 150, Omid.NONE));
        Pushdown mixed = versions();
        assertTrue(mixed.take(is("OR", equal, is(">=", column("timestamp"), number(60)))));
        assertTrue(mixed.filter().test(70, Omid.NONE, Omid.NONE));
        assertFalse(mixed.filter().test(50, Omid.NONE, Omid.NONE));
    }

    /** Rows narrow the range; named rows are kept apart. */
    @Test
    void rowsNarrow() {
        Pushdown pushdown = versions();
        assertTrue(pushdown.take(is(">", column("row"), bytes("b"))));
        assertTrue(pushdown.take(is("<=", column("row"), bytes("d"))));
        assertEquals("b\\x00", Bytes.toStringBinary(pushdown.start));
        assertEquals("d\\x00", Bytes.toStringBinary(pushdown.stop));
        assertTrue(pushdown.take(is("IN", column("row"), bytes("c"), bytes("a"), bytes("d"))));
        assertEquals(2, pushdown.rowsWithin(pushdown.start, pushdown.stop).size());
        assertTrue(pushdown.take(is("=", column("row"), bytes("x"))));
        assertTrue(pushdown.isEmpty());
    }

    /** No row has the empty key, which to HBase's scans and filters is the end of a table. */
    @Test
    void theEmptyKeyIsNoRows() {
        Pushdown among = versions();
        assertTrue(among.take(is("IN", column("row"), bytes(""), bytes("c"))));
        assertEquals(List.of("c"), among.rowsWithin(among.start, among.stop).stream().map(Bytes::toString).toList());
        Pushdown alone = versions();
        assertTrue(alone.take(is("=", column("row"), bytes(""))));
        assertTrue(alone.isEmpty());
    }

    /** What is not said in terms of cells stays with Spark. */
    @Test
    void theRestStaysWithSpark() {
        Pushdown pushdown = versions();
        assertFalse(pushdown.take(is("=", column("kind"), new LiteralValue<>("put", DataTypes.StringType))));
        assertFalse(pushdown.take(is("=", column("qualifier"), bytes("q"))));
        assertFalse(pushdown.take(is("<>", column("row"), bytes("q"))));
        assertFalse(pushdown.take(is("OR", is("IS_NULL", column("commit_ts")), is("IS_NULL", column("value")))));
        assertFalse(cells("false").take(is("IS_NULL", column("commit_ts"))));
        assertTrue(cells("false").take(is("=", column("qualifier"), bytes("q"))));
    }

    /** The latest version is chosen before the upper bound, as it would be if Spark filtered. */
    @Test
    void anUpperBoundBringsNoOlderVersionToLight() {
        Pushdown latest = cells("false");
        assertTrue(latest.take(is("<", column("timestamp"), number(100))));
        assertEquals(Long.MAX_VALUE, latest.to);
        assertFalse(latest.filter().test(100, Omid.NONE, Omid.NONE));
        Pushdown raw = cells("true");
        assertTrue(raw.take(is("<", column("timestamp"), number(100))));
        assertEquals(100, raw.to);
    }

    /** A set knows its members, also the extreme ones. */
    @Test
    void setsOfNumbers() {
        Random random = new Random(7);
        long[] members = random.longs(1000).toArray();
        members[0] = Long.MAX_VALUE;
        members[1] = 0;
        LongSet set = new LongSet(members);
        for (long member : members) {
            assertTrue(set.contains(member));
        }
        assertFalse(set.contains(12345));
        assertFalse(new LongSet().contains(0));
    }
}
