package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionInfoBuilder;
import org.junit.jupiter.api.Test;

class AsOfTest {
    private static final long WORLD = 1_790_000_000_000_000_000L;

    private static List<RegionInfo> regions(long... ids) {
        return Arrays.stream(ids).mapToObj(id -> RegionInfoBuilder.newBuilder(TableName.valueOf("orders")).setRegionId(id)
                .build()).toList();
    }

    /** As long as one region is not newer than the read the table is the one that it began with. */
    @Test
    void knowsATableThatWasMadeAnew() {
        AsOf asOf = new AsOf(1000, Commits.NONE, 7);
        asOf.checkSame("orders", regions(9, 7, 8));
        for (List<RegionInfo> regions : List.of(regions(8, 9), regions())) {
            String text = assertThrows(IllegalStateException.class, () -> asOf.checkSame("orders", regions)).getMessage();
            assertTrue(text.contains("All regions of orders were replaced since the read began"), text);
        }
    }

    /** Milliseconds are no timestamps of an oracle on the world's clock, and are told as the time that may be meant. */
    @Test
    void refusesMillisecondsOnTheWorldsClock() {
        String text = assertThrows(IllegalArgumentException.class, () -> Moment.stamp(1_700_000_000_000L, WORLD)).getMessage();
        assertTrue(text.contains("asOf = 1700000000000 is no timestamp") && text.contains("2023-11-14T22:13:20Z"), text);
        assertEquals(WORLD - 50, Moment.stamp(WORLD - 50, WORLD));
        assertEquals(1000, Moment.stamp(1000, 90_000), "an oracle that counts");
    }
}
