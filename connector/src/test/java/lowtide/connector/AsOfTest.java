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
}
