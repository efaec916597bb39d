package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hbase.client.Scan;
import org.junit.jupiter.api.Test;

/** Cells as HBase has them. */
class PlainReaderTest {

    /** HBase's handler would spin for good on a raw scan with a lower bound. */
    @Test
    void aRawScanHasNoLowerBound() {
        assertEquals(0, PieceReader.lowerBound(true, 100));
        assertEquals(100, PieceReader.lowerBound(false, 100));
    }

    @Test
    void whatLiesBelowIsPassedOver() throws Exception {
        MemoryStore store = new MemoryStore(new Random(7), 3);
        for (long timestamp = 98; timestamp <= 102; timestamp++) {
            store.data("r", "q", timestamp, "v");
        }
        Scan scan = new Scan().readAllVersions().setTimeRange(0, 102);
        List<Long> seen = new ArrayList<>();
        try (PlainReader reader = new PlainReader(store, scan, new Tally(new byte[][] {{'f'}}), RowFilter.ALL, 100)) {
            while (reader.next()) {
                seen.add(reader.timestamp());
            }
        }
        assertEquals(List.of(101L, 100L), seen);
    }
}
