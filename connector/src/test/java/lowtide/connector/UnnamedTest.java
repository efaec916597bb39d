package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** Cases that tests/spark/omid_reader.py, the client's model, decides. */
class UnnamedTest {
    private static final long READ_POINT = 1000;
    private final MemoryStore store = new MemoryStore(new Random(1), 3);

    /** A version, with its commit timestamp (0: none). */
    private UnnamedTest cell(String qualifier, long timestamp, long commit, String value) {
        store.data("r", qualifier, timestamp, value);
        if (commit > 0) {
            store.shadow("r", qualifier, timestamp, commit);
        }
        return this;
    }

    private void shows(String... wanted) throws IOException {
        Scan scan = new Scan().readAllVersions().setTimeRange(0, READ_POINT + 1);
        AsOf asOf = new AsOf(READ_POINT, false, Commits.NONE, Journal.NONE, 0, new TreeMap<>());
        List<String> shown = new ArrayList<>();
        try (VersionReader reader = new VersionReader(store, scan, new Tally(new byte[][] {Bytes.toBytes("f")}),
                new RowFilter.AtReadPoint(READ_POINT), false, true, false, asOf, Options.DEFAULT_PAIRING_LIMIT)) {
            while (reader.next()) {
                if (reader.kind() == Kind.PUT) {
                    shown.add(Bytes.toString(reader.qualifier()) + "@" + reader.timestamp());
                }
            }
        }
        assertEquals(List.of(wanted), shown);
    }

    /** A family tombstone hides what is not above its commit timestamp, and puts without qualifier below itself. */
    @Test
    void aFamilyTombstoneHides() throws IOException {
        cell("", 500, 600, "").cell("a", 500, 600, "v").cell("b", 650, 700, "v").cell("", 400, 450, "v").shows("b@650");
    }

    /** Below a put without qualifier that the read point sees no family tombstone is looked for. */
    @Test
    void aPutThatShowsEndsTheSearch() throws IOException {
        cell("", 500, 600, "").cell("a", 500, 600, "v").cell("", 550, 560, "v").shows("@550", "a@500");
    }

    /** Below one that it does not see the tombstone is found, too late for columns whose newest version it sees. */
    @Test
    void aPutThatDoesNotShowDelaysTheSearch() throws IOException {
        cell("", 500, 600, "").cell("", 550, 0, "v");
        cell("a", 500, 600, "v").cell("a", 550, 0, "v").cell("b", 500, 600, "v").shows("b@500");
    }

    /** The second batch has two versions: a tombstone in it hides the put above it, one behind it is not found. */
    @Test
    void aBatchIsSearchedBeforeItIsJudged() throws IOException {
        cell("", 700, 0, "v").cell("", 550, 560, "v").cell("", 500, 600, "").cell("a", 700, 0, "v")
                .cell("a", 500, 520, "v");
        shows();
        cell("", 650, 0, "v").shows("@550", "a@500");
    }

    /**
     * A family tombstone that the read point does not see hides nothing, but an older one is found, and no put looked
     * for.
     */
    @Test
    void anUnseenTombstoneStartsTheSearch() throws IOException {
        cell("", 700, 0, "").cell("", 600, 610, "v").cell("", 550, 560, "").cell("a", 500, 520, "v").shows();
    }
}
