package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

class PlannerTest {
    private static final TableName TABLE = TableName.valueOf("orders");

    /** Regions by their first and last keys: "a-c" is [a, c). */
    private static List<RegionInfo> regions(String... keys) {
        List<RegionInfo> regions = new ArrayList<>();
        for (String each : keys) {
            String[] ends = each.split("-", 2);
            regions.add(RegionInfoBuilder.newBuilder(TABLE).setStartKey(Bytes.toBytes(ends[0]))
                    .setEndKey(Bytes.toBytes(ends[1])).setRegionId(regions.size() + 1).build());
        }
        return regions;
    }

    private static void refused(String words, String... keys) {
        String text = assertThrows(IOException.class, () -> Planner.checkCovered(TABLE, regions(keys))).getMessage();
        assertTrue(text.contains("table orders") && text.contains(words) && text.contains("read again"), text);
    }

    /**
     * In whatever order they come, regions that follow each other from the beginning to the end are the whole table.
     */
    @Test
    void takesRegionsThatFollowEachOther() throws IOException {
        Planner.checkCovered(TABLE, regions("-"));
        Planner.checkCovered(TABLE, regions("m-", "-c", "c-m"));
    }

    /**
     * Where a region is missing, at an end or between others, or one lies over another, the table and the place are
     * named.
     */
    @Test
    void refusesAGapAndAnOverlap() {
        refused("behind row c the next begins at row m", "-c", "m-");
        refused("behind the table's beginning the next begins at row c", "c-m", "m-");
        refused("behind row m the next begins at the table's end", "-c", "c-m");
        refused("behind row m the next begins at row c", "-m", "c-");
        refused("behind the table's end the next begins at row c", "-", "c-");
        refused("behind the table's end the next begins at the table's beginning", "-", "-");
        refused("behind the table's beginning the next begins at the table's end");
    }

    /** A region that is open nowhere is read wherever it will be: it has no machine yet, and that is no error. */
    @Test
    void aRegionThatIsOpenNowhereHasNoMachine() {
        RegionInfo region = regions("-").get(0);
        ServerName server = ServerName.valueOf("one.example", 16020, 1);
        assertEquals("one.example", Planner.host(new HRegionLocation(region, server)));
        assertNull(Planner.host(new HRegionLocation(region, null)));
        Piece anywhere = new Piece("t", "r", new byte[0], new byte[0], 0, 1, new byte[0][], 0, null, null);
        assertEquals(0, anywhere.preferredLocations().length);
    }
}
