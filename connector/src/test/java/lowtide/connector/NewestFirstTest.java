package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;

/** What shows at a read point shows newest first, too, and of settled rows only the newest versions are read. */
class NewestFirstTest {
    private static final long READ_POINT = 1000;
    private static final byte[] F = Bytes.toBytes("f");
    private static final byte[] G = Bytes.toBytes("g");
    /** Beginnings of each other, whose shadow cells are in another order, and one that sorts before all of these. */
    private static final String[] QUALIFIERS = {"c", "c1", "c10", "c2", "\u0000"};

    /** A store whose scans are opened newest first, and the scans. */
    private static final class Opened implements CellStore {
        private final MemoryStore store;
        private final List<Scan> scans = new ArrayList<>();

        Opened(MemoryStore store) {
            this.store = store;
        }

        @Override
        public CellSource open(Scan scan) {
            scans.add(scan);
            return store.open(scan);
        }

        @Override
        public CellSource openShown(Scan scan, AsOf asOf) throws IOException {
            return new NewestFirst(this, scan, asOf.readPoint);
        }

        @Override
        public void close() {
        }
    }

    private static List<String> shown(CellStore store, Tally tally) throws IOException {
        Scan scan = new Scan().readAllVersions().setTimeRange(0, READ_POINT + 1);
        AsOf asOf = new AsOf(READ_POINT, false, Commits.NONE, Journal.NONE, 0, new TreeMap<>());
        List<String> shown = new ArrayList<>();
        try (VersionReader reader = new VersionReader(store, scan, tally, new RowFilter.AtReadPoint(READ_POINT), true, true,
                false, asOf, Options.DEFAULT_PAIRING_LIMIT)) {
            while (reader.next()) {
                if (reader.kind() == Kind.PUT) {
                    shown.add(Bytes.toString(reader.row()) + "/" + Bytes.toString(reader.family()) + ":"
                            + Bytes.toStringBinary(reader.qualifier()) + "@" + reader.timestamp() + "="
                            + Bytes.toStringBinary(reader.value()));
                }
            }
        }
        return shown;
    }

    private static Tally tally() {
        return new Tally(new byte[][] {F, G});
    }

    private static MemoryStore store(Random random) {
        return new MemoryStore(random, 1 + random.nextInt(12));
    }

    private static void put(MemoryStore store, int row, byte[] family, String qualifier, long timestamp, long commit,
            byte[] value) {
        byte[] key = Bytes.toBytes(String.format("r%05d", row));
        store.put(key, family, Bytes.toBytes(qualifier), timestamp, value);
        if (commit != Omid.NONE) {
            store.put(key, family, Omid.shadowQualifier(Bytes.toBytes(qualifier)), timestamp, Bytes.toBytes(commit));
        }
    }

    /** Rows with versions of all ages: mostly proved, some late, unproved, deleted, without qualifier or data. */
    private static void fill(MemoryStore store, Random random, int rows, int oddIn) {
        for (int row = 0; row < rows; row++) {
            int versions = 1 + random.nextInt(12);
            for (int i = 0; i < versions; i++) {
                byte[] family = random.nextInt(3) == 0 ? G : F;
                String qualifier = QUALIFIERS[random.nextInt(4)];
                long start = 50 * (1 + random.nextInt(30));
                long commit = start + random.nextInt(60);
                byte[] value = random.nextInt(6) == 0 ? new byte[0] : Bytes.toBytes("v" + random.nextInt(100));
                switch (random.nextInt(oddIn)) {
                    case 0:
                        commit = Omid.NONE;
                        break;
                    case 1:
                        qualifier = "";
                        break;
                    case 2:
                        qualifier = QUALIFIERS[4];
                        break;
                    case 3:
                        store.put(Bytes.toBytes(String.format("r%05d", row)), family,
                                Omid.shadowQualifier(Bytes.toBytes(qualifier)), start + 50, Bytes.toBytes(commit + 50));
                        break;
                    default:
                        break;
                }
                put(store, row, family, qualifier, start + (random.nextInt(9) == 0 ? 7 : 0), commit, value);
            }
        }
    }

    /** Whatever there is, however rows come in parts, and however many of them have to be read again. */
    @Test
    void showsWhatAllVersionsShow() throws IOException {
        for (int seed = 0; seed < 400; seed++) {
            Random random = new Random(seed);
            MemoryStore store = store(random);
            fill(store, random, 1 + random.nextInt(40), 4 + random.nextInt(300));
            assertEquals(shown(store, tally()), shown(new Opened(store), tally()), "seed " + seed);
        }
    }

    /** Of rows whose newest versions are all proved nothing else is read, wherever a shadow cell lies among others. */
    @Test
    void readsTheNewestOfSettledRowsAlone() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 1 << 20);
        for (int row = 0; row < 20; row++) {
            for (int column = 0; column < 30; column++) {
                for (long start = 50; start <= 500; start += 50) {
                    put(store, row, F, "c" + column, start, start + 20, Bytes.toBytes("v" + start));
                }
            }
        }
        Opened opened = new Opened(store);
        Tally tally = tally();
        assertEquals(600, shown(opened, tally).size());
        assertEquals(1, opened.scans.size());
        assertEquals(2 * 600, tally.cells());
    }

    /** A row whose newest version is late, unproved or of a later shadow cell is read again, by itself. */
    @Test
    void readsAgainWhatIsNotSettled() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 1 << 20);
        for (int row = 0; row < 20; row++) {
            put(store, row, F, "a", 100, 120, Bytes.toBytes("old"));
            put(store, row, F, "a", 200, row == 3 ? READ_POINT : row == 5 ? Omid.NONE : 220, Bytes.toBytes("new"));
        }
        store.put(Bytes.toBytes("r00007"), F, Omid.shadowQualifier(Bytes.toBytes("a")), 300, Bytes.toBytes(320L));
        Opened opened = new Opened(store);
        List<String> shown = shown(opened, tally());
        assertEquals(20, shown.size());
        assertTrue(shown.containsAll(List.of("r00003/f:a@100=old", "r00005/f:a@100=old", "r00007/f:a@200=new")), "" + shown);
        assertEquals(List.of("r00003", "r00005", "r00007"),
                opened.scans.stream().skip(1).map(scan -> Bytes.toString(scan.getStopRow())).toList());
    }

    /** Where many rows would have to be read again all versions are read of the rest, in one scan. */
    @Test
    void readsAllOfTheRestWhereManyAreNotSettled() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 1 << 20);
        for (int row = 0; row < 200; row++) {
            put(store, row, F, "a", 100, 120, Bytes.toBytes("old"));
            put(store, row, F, "a", 200, Omid.NONE, Bytes.toBytes("new"));
        }
        Opened opened = new Opened(store);
        assertEquals(200, shown(opened, tally()).size());
        assertEquals(12, opened.scans.size(), "the newest, ten rows, and the rest");
        assertEquals(0, opened.scans.get(11).getStopRow().length);
    }
}
