package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;

class OptionsTest {
    private static void refused(String name, String value, String... words) {
        String text = assertThrows(IllegalArgumentException.class, () -> new Options(Map.of(name, value))).getMessage();
        for (String word : words) {
            assertTrue(text.contains(word), text);
        }
    }

    /** HBase's keys keep their case; the connector's own names are taken in any. */
    @Test
    void keepsTheCaseOfHBasesKeys() {
        Options options = new Options(Map.of("hbase.zookeeper.property.clientPort", "1", "SPLITBYTES", "7",
                "zookeeper.session.timeout", "5"));
        assertEquals("1", options.hbase.get("hbase.zookeeper.property.clientPort"));
        assertEquals("5", options.hbase.get("zookeeper.session.timeout"));
        assertEquals(7, options.splitBytes);
    }

    /**
     * One table has one name, under which its mark and its holds are found; a malformed one is left for the error that
     * names it.
     */
    @Test
    void takesATableByOneName() {
        assertEquals("orders", new Options(Map.of("table", "default:orders")).table);
        assertEquals("shop:orders", new Options(Map.of("table", "shop:orders")).table);
        assertEquals("a b", new Options(Map.of("table", "a b")).table);
    }

    /** Ranges carry rows and timestamps; what is left out has no bound. */
    @Test
    void readsRanges() {
        Options options = new Options(Map.of("ranges",
                "[{\"id\":\"a\",\"start\":\"00fF\",\"stop\":\"\",\"from\":50,\"to\":9223372036854775807},"
                        + "{\"id\":\"b\"}]"));
        assertEquals("a", options.ranges.get(0).id());
        assertArrayEquals(new byte[] {0, -1}, options.ranges.get(0).start());
        assertEquals(50, options.ranges.get(0).from());
        assertEquals(Long.MAX_VALUE, options.ranges.get(1).to());
        assertEquals(0, options.ranges.get(1).stop().length);
    }

    /** Tables that are read together each have their families and ranges; what is left out is all of it. */
    @Test
    void readsTables() {
        Options options = new Options(Map.of("tables", "[{\"table\":\"default:a\",\"families\":[\"f\"],\"ranges\":"
                + "[{\"id\":\"r\",\"from\":1}]},{\"table\":\"b\"}]"));
        assertEquals("a", options.tables.get(0).table());
        assertEquals(java.util.List.of("f"), options.tables.get(0).families());
        assertEquals(1, options.tables.get(0).ranges().get(0).from());
        assertEquals(null, options.tables.get(1).families());
        assertEquals(null, options.tables.get(1).ranges());
        refused("tables", "{}", "tables = {}", "not a list");
        refused("tables", "[{}]", "no text \"table\"");
        for (String other : new String[] {"table", "ranges", "read", "view"}) {
            String value = Map.of("table", "a", "ranges", "[]", "read", "snapshot", "view", "snapshots").get(other);
            assertTrue(assertThrows(IllegalArgumentException.class, () -> new Options(Map.of("tables",
                    "[{\"table\":\"b\"}]", other, value))).getMessage().contains("Option tables goes with"));
        }
    }

    /** What cannot be used is refused by name, with its value and what to do. */
    @Test
    void refusesWithARemedy() {
        refused("veiw", "cells", "veiw", "cells", "Known are");
        refused("view", "cell", "view = cell", "versions, cells, as_of, tables, regions, snapshots");
        refused("read", "files", "read = files", "rpc, snapshot");
        refused("perSecond", "2MB", "perSecond = 2MB", "whole number");
        refused("splitBytes", "-1", "splitBytes = -1", "whole number");
        refused("holdOwner", " ", "holdOwner =  ", "names nobody", "leave it out");
        refused("holdOwner", "", "names nobody");
        refused("clock", "sundial", "clock = sundial", "auto, world, incremental");
        refused("holdMaxAgeMillis", "0", "holdMaxAgeMillis = 0", "whole number from 1 on");
        refused("endRows", "yes", "endRows = yes", "true nor false");
        refused("raw", "true", "raw = true", "view cells");
        refused("allVersions", "true", "allVersions = true", "view cells");
        refused("ranges", "{}", "ranges = {}", "not a list");
        refused("ranges", "[{\"id\":\"a\",\"start\":\"xyz\"}]", "\"start\" of a is not hex");
        refused("ranges", "[{\"id\":\"a\",\"from\":5,\"to\":4}]", "[5, 4)");
        refused("ranges", "[{\"id\":\"a\",\"to\":1.5}]", "\"to\" of a");
        refused("ranges", "[{\"start\":\"00\"}]", "no text \"id\"");
        assertThrows(IllegalArgumentException.class, () -> new Options(Map.of()).tableName());
        assertThrows(IllegalArgumentException.class, () -> new Options(Map.of("table", "a b")).tableName());
    }
}
