package lowtide.connector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.util.Bytes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class VersionReaderTest {
    private static final byte[] F = Bytes.toBytes("f");
    private static final byte[] G = Bytes.toBytes("ff");

    /** Columns that sort before, among and behind the shadow cells, beginnings of each other, and the empty one. */
    private static final List<byte[]> QUALIFIERS = List.of(new byte[0], new byte[] {0}, new byte[] {0, 0, 0, 1},
            new byte[] {0, (byte) 0xC2}, new byte[] {0, (byte) 0xC2, (byte) 0x80},
            new byte[] {0, (byte) 0xC2, (byte) 0x80, 'x'}, new byte[] {0, (byte) 0xC2, (byte) 0x81},
            new byte[] {(byte) 0xC2, (byte) 0x80}, Bytes.toBytes("c"), Bytes.toBytes("c1"), Bytes.toBytes("c10"),
            Bytes.toBytes("c11"), Bytes.toBytes("c2"), new byte[] {'c', (byte) 0xFF}, new byte[] {(byte) 0xFF});

    /** One row as text, so that lists can be compared. */
    private static String text(byte[] row, byte[] family, byte[] qualifier, long timestamp, long commit, long replaced,
            Kind kind, byte[] value, String problem) {
        return Bytes.toStringBinary(row) + "/" + Bytes.toString(family) + ":" + Bytes.toStringBinary(qualifier) + "@"
                + timestamp + " commit=" + (commit == Omid.NONE ? "-" : commit) + " replaced="
                + (replaced == Omid.NONE ? "-" : replaced) + " " + kind
                + (value == null ? "" : " value=" + Bytes.toStringBinary(value))
                + (problem == null ? "" : " problem=" + problem);
    }

    private static Tally tally() {
        return new Tally(new byte[][] {F, G});
    }

    private static List<String> read(CellStore store, Scan scan, RowFilter filter, int limit, boolean withValue,
            boolean withReplaced) throws IOException {
        return read(store, scan, filter, limit, withValue, withReplaced, tally());
    }

    private static List<String> read(CellStore store, Scan scan, RowFilter filter, int limit, boolean withValue,
            boolean withReplaced, Tally tally) throws IOException {
        List<String> rows = new ArrayList<>();
        try (VersionReader reader = new VersionReader(store, scan, tally, filter, withValue, withReplaced, false,
                null, limit)) {
            while (reader.next()) {
                rows.add(text(reader.row(), reader.family(), reader.qualifier(), reader.timestamp(), reader.commit(),
                        reader.replaced(), reader.kind(), reader.value(), reader.problem()));
            }
            assertFalse(reader.next(), "the end stays the end");
        }
        return rows;
    }

    /** What the contract says, read literally: slow, with everything in memory. */
    private static List<String> expected(MemoryStore store, RowFilter filter, boolean withValue,
            boolean withReplaced) {
        List<String> rows = new ArrayList<>();
        Map<String, Cell> shadows = new HashMap<>();
        Map<String, Cell> datas = new HashMap<>();
        for (Cell cell : store.cells) {
            byte[] qualifier = CellUtil.cloneQualifier(cell);
            if (!Omid.endsAsShadow(qualifier, 0, qualifier.length)) {
                datas.put(key(cell, qualifier), cell);
            } else if (problem(cell) == null) {
                shadows.put(key(cell, dataQualifier(qualifier)), cell);
            }
        }
        for (Cell cell : store.cells) {
            byte[] qualifier = CellUtil.cloneQualifier(cell);
            long at = cell.getTimestamp();
            String problem = problem(cell);
            byte[] value = withValue ? CellUtil.cloneValue(cell) : null;
            if (problem != null) {
                rows.add(text(CellUtil.cloneRow(cell), CellUtil.cloneFamily(cell), qualifier, at, Omid.NONE, Omid.NONE,
                        Kind.UNKNOWN, value, problem));
            } else if (Omid.endsAsShadow(qualifier, 0, qualifier.length)) {
                byte[] data = dataQualifier(qualifier);
                long commit = Bytes.toLong(CellUtil.cloneValue(cell));
                if (!datas.containsKey(key(cell, data)) && filter.test(at, commit, Omid.NONE)) {
                    rows.add(text(CellUtil.cloneRow(cell), CellUtil.cloneFamily(cell), data, at, commit, Omid.NONE,
                            Kind.SHADOW, null, null));
                }
            } else {
                Cell shadow = shadows.get(key(cell, qualifier));
                long commit = shadow == null ? Omid.NONE : Bytes.toLong(CellUtil.cloneValue(shadow));
                long replaced = withReplaced ? replaced(cell, qualifier, proven(cell, store, shadows),
                        bare(cell, store))
                        : Omid.NONE;
                if (filter.test(at, commit, replaced)) {
                    rows.add(text(CellUtil.cloneRow(cell), CellUtil.cloneFamily(cell), qualifier, at, commit, replaced,
                            Omid.kind(cell, qualifier.length), value, null));
                }
            }
        }
        return rows;
    }

    /** A data cell with its commit. */
    private record Proven(Cell cell, boolean isTombstone, long commit) {
    }

    /** The committed data cells of the cell's row and family. */
    private static List<Proven> proven(Cell cell, MemoryStore store, Map<String, Cell> shadows) {
        List<Proven> proven = new ArrayList<>();
        for (Cell other : store.cells) {
            byte[] qualifier = CellUtil.cloneQualifier(other);
            if (CellUtil.matchingRows(cell, other) && CellUtil.matchingFamily(cell, other)
                    && !Omid.endsAsShadow(qualifier, 0, qualifier.length)) {
                Cell shadow = shadows.get(key(other, qualifier));
                if (shadow != null) {
                    proven.add(new Proven(other, Omid.kind(other, qualifier.length) == Kind.FAMILY_TOMBSTONE,
                            Bytes.toLong(CellUtil.cloneValue(shadow))));
                }
            }
        }
        return proven;
    }

    /** Whether a cell without qualifier lies in the cell's row and family that is no family tombstone. */
    private static boolean bare(Cell cell, MemoryStore store) {
        return store.cells.stream().anyMatch(other -> CellUtil.matchingRows(cell, other)
                && CellUtil.matchingFamily(cell, other) && other.getQualifierLength() == 0
                && Omid.kind(other, 0) != Kind.FAMILY_TOMBSTONE);
    }

    /** The smallest commit after which a reader does not see the version any more. */
    private static long replaced(Cell cell, byte[] qualifier, List<Proven> others, boolean bare) {
        boolean isTombstone = Omid.kind(cell, qualifier.length) == Kind.FAMILY_TOMBSTONE;
        return others.stream().mapToLong(Proven::commit)
                .filter(candidate -> hidden(cell, isTombstone, candidate + 1, others, bare)).min().orElse(Omid.NONE);
    }

    /** Whether a reader at a read point passes the version over: Omid's SnapshotFilterImpl, in short. */
    private static boolean hidden(Cell cell, boolean isTombstone, long readPoint, List<Proven> others,
            boolean bare) {
        Proven tombstone = null;
        for (Proven other : others) {
            boolean higher = other.cell.getTimestamp() > cell.getTimestamp();
            if (other.commit >= readPoint) {
                continue;
            }
            if (higher && isTombstone == other.isTombstone && CellUtil.matchingQualifier(cell, other.cell)) {
                return true;
            }
            if (other.isTombstone && (tombstone == null || other.cell.getTimestamp() > tombstone.cell.getTimestamp())) {
                tombstone = other;
            }
        }
        return !isTombstone && !bare && tombstone != null && tombstone.commit >= cell.getTimestamp();
    }

    private static String key(Cell cell, byte[] qualifier) {
        return Bytes.toHex(CellUtil.cloneRow(cell)) + ":" + Bytes.toString(CellUtil.cloneFamily(cell)) + ":"
                + Bytes.toHex(qualifier) + ":" + cell.getTimestamp();
    }

    private static byte[] dataQualifier(byte[] shadow) {
        return java.util.Arrays.copyOfRange(shadow, 3, shadow.length - 2);
    }

    private static String problem(Cell cell) {
        byte[] qualifier = CellUtil.cloneQualifier(cell);
        if (!Omid.endsAsShadow(qualifier, 0, qualifier.length)) {
            return null;
        }
        if (qualifier.length < 5 || qualifier[0] != 0 || qualifier[1] != (byte) 0xC2 || qualifier[2] != (byte) 0x80) {
            return "shadow qualifier without prefix";
        }
        if (cell.getValueLength() != 8) {
            return "shadow cell of " + cell.getValueLength() + " bytes";
        }
        return Bytes.toLong(CellUtil.cloneValue(cell)) < cell.getTimestamp() / 50 * 50
                ? "shadow cell below its own timestamp" : null;
    }

    /** A few rows of everything: tombstones, checkpoints, dangling, malformed and old shadow cells, two families. */
    private static MemoryStore randomCells(Random random, int rows, int batch) {
        MemoryStore store = new MemoryStore(random, batch);
        for (int row = 0; row < rows; row++) {
            byte[] key = Bytes.toBytes("r" + row);
            int cells = random.nextInt(40);
            for (int i = 0; i < cells; i++) {
                byte[] family = random.nextInt(4) == 0 ? G : F;
                byte[] qualifier = QUALIFIERS.get(random.nextInt(QUALIFIERS.size()));
                long start = 50 * (1 + random.nextInt(12));
                long timestamp = start + (random.nextInt(5) == 0 ? random.nextInt(50) : 0);
                byte[] commit = Bytes.toBytes(start + 50 * random.nextInt(8));
                byte[] shadow = Omid.shadowQualifier(qualifier);
                switch (random.nextInt(12)) {
                    case 0:
                        store.put(key, family, shadow, timestamp, commit);
                        break;
                    case 1:
                        store.put(key, family, shadow, timestamp, Bytes.toBytes(start - 1));
                        break;
                    case 2:
                        store.put(key, family, shadow, timestamp, new byte[random.nextInt(12)]);
                        break;
                    case 3:
                        store.put(key, family, Bytes.add(qualifier, new byte[] {(byte) 0xC2, (byte) 0x80}),
                                timestamp, commit);
                        break;
                    default:
                        store.put(key, family, qualifier, timestamp, value(random));
                        if (random.nextInt(4) > 0) {
                            store.put(key, family, shadow, timestamp, commit);
                        }
                        break;
                }
            }
        }
        return store;
    }

    private static byte[] value(Random random) {
        switch (random.nextInt(4)) {
            case 0:
                return new byte[0];
            case 1:
                return Bytes.toBytes("__OMID_TOMBSTONE__");
            case 2:
                return Bytes.toBytes("__OMID_TOMBSTONE_?");
            default:
                return Bytes.toBytes("v" + random.nextInt(1000));
        }
    }

    private static Scan all() {
        return new Scan().readAllVersions();
    }

    /** Compares regardless of the order, and tells only what differs. */
    private static void assertSameRows(List<String> wanted, List<String> actual, String what) {
        List<String> missing = new ArrayList<>(wanted);
        List<String> surplus = new ArrayList<>(actual);
        actual.forEach(missing::remove);
        wanted.forEach(surplus::remove);
        assertEquals("missing [] surplus []", "missing " + missing + " surplus " + surplus, what);
    }

    private static List<String> dataOf(List<String> rows) {
        return rows.stream().filter(row -> !row.contains(" SHADOW") && !row.contains(" UNKNOWN")).toList();
    }

    /** Every cell is accounted for as the contract says, however few cells may be buffered. */
    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 5, 13, 1 << 16})
    void matchesTheContract(int limit) throws IOException {
        for (int seed = 0; seed < 100; seed++) {
            Random random = new Random(seed);
            MemoryStore store = randomCells(random, 3, 1 + random.nextInt(20));
            Tally tally = tally();
            List<String> actual = read(store, all(), RowFilter.ALL, limit, true, true, tally);
            List<String> wanted = expected(store, RowFilter.ALL, true, true);
            assertSameRows(wanted, actual, "seed " + seed);
            assertEquals(dataOf(wanted), dataOf(actual), "order of data cells, seed " + seed);
            for (int i = 0; i < tally.families(); i++) {
                byte[] family = tally.family(i);
                assertEquals(store.cells.stream().filter(cell -> CellUtil.matchingFamily(cell, family)).count(),
                        tally.cells(i), "cells seen, seed " + seed);
            }
            assertEquals(store.cells.stream().mapToLong(Cell::getSerializedSize).sum(), tally.bytes(), "their bytes");
        }
    }

    /** A filter shows exactly the rows that it passes, and every unknown one. */
    @ParameterizedTest
    @ValueSource(ints = {2, 7, 1 << 16})
    void filters(int limit) throws IOException {
        List<RowFilter> filters = List.of(new RowFilter.Suspects(new LongSet()),
                new RowFilter.Suspects(new LongSet(100, 250, 300)),
                new RowFilter.Tree(Condition.compare(Condition.Field.REPLACED, Condition.Comparison.LESS_OR_EQUAL,
                        400)),
                new RowFilter.Tree(Condition.not(Condition.isNull(Condition.Field.COMMIT))));
        for (int seed = 0; seed < 50; seed++) {
            MemoryStore store = randomCells(new Random(seed), 3, 10);
            for (RowFilter filter : filters) {
                assertSameRows(expected(store, filter, false, true),
                        read(store, all(), filter, limit, false, true), "seed " + seed);
            }
        }
    }

    /** With a time range, cells outside it play no part. */
    @ParameterizedTest
    @ValueSource(ints = {2, 1 << 16})
    void keepsToTheTimeRange(int limit) throws IOException {
        for (int seed = 0; seed < 50; seed++) {
            MemoryStore store = randomCells(new Random(seed), 3, 10);
            List<String> actual = read(store, all().setTimeRange(150, 400), RowFilter.ALL, limit, true, false);
            store.cells.removeIf(cell -> cell.getTimestamp() < 150 || cell.getTimestamp() >= 400);
            assertSameRows(expected(store, RowFilter.ALL, true, false), actual, "seed " + seed);
        }
    }

    /** A column with more versions than may be buffered is paired in chunks of its own. */
    @Test
    void pairsOneColumnOfManyVersions() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 50);
        for (int i = 1; i <= 60; i++) {
            store.data("r", "a", 50L * i, "v");
            if (i % 7 != 0) {
                store.shadow("r", "a", 50L * i, 50L * i + 50);
            }
        }
        store.shadow("r", "ab", 50, 100).data("r", "ab", 50, "x");
        assertEquals(expected(store, RowFilter.ALL, true, true),
                read(store, all(), RowFilter.ALL, 7, true, true));
    }

    /** Many columns whose shadow cells come in another order than the columns are all found. */
    @Test
    void pairsColumnsWhoseShadowCellsAreOrderedOtherwise() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 50);
        for (int i = 0; i < 2000; i++) {
            store.data("r", "c" + i, 100, "v").shadow("r", "c" + i, 100, 150);
        }
        for (int limit : new int[] {10, 1 << 16}) {
            assertEquals(List.of(), read(store, all(), new RowFilter.Suspects(new LongSet(50)), limit, false, false));
            assertEquals(2000, read(store, all(), RowFilter.ALL, limit, false, false).size());
        }
    }

    /** A family tombstone hides what is not above its commit; one that commits after a higher one hides nothing. */
    @Test
    void familyTombstonesHide() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 50);
        store.data("r", "", 100, "").shadow("r", "", 100, 150);
        store.data("r", "", 50, "").shadow("r", "", 50, 300);
        store.data("r", "a", 100, "x").shadow("r", "a", 100, 120);
        store.data("r", "a", 200, "y").shadow("r", "a", 200, 250);
        assertEquals(List.of(
                "r/f:@100 commit=150 replaced=- FAMILY_TOMBSTONE",
                "r/f:@50 commit=300 replaced=150 FAMILY_TOMBSTONE",
                "r/f:a@200 commit=250 replaced=- PUT",
                "r/f:a@100 commit=120 replaced=150 PUT"),
                read(store, all(), RowFilter.ALL, 100, false, true));
    }

    /** A version is hidden by whichever higher one committed first, and that need not be the next one. */
    @Test
    void theFirstCommitAboveHides() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 50);
        store.data("r", "a", 200, "z").shadow("r", "a", 200, 250);
        store.data("r", "a", 100, "y").shadow("r", "a", 100, 400);
        store.data("r", "a", 50, "x").shadow("r", "a", 50, 60);
        assertEquals(List.of(
                "r/f:a@200 commit=250 replaced=- PUT",
                "r/f:a@100 commit=400 replaced=250 PUT",
                "r/f:a@50 commit=60 replaced=250 PUT"),
                read(store, all(), RowFilter.ALL, 100, false, true));
    }

    /** Beside a put without qualifier Omid's reader finds no family tombstone: none is taken to hide anything. */
    @Test
    void aPutWithoutQualifierUndoesFamilyTombstones() throws IOException {
        MemoryStore store = new MemoryStore(new Random(1), 50);
        store.data("r", "", 200, "put without proof");
        store.data("r", "", 100, "").shadow("r", "", 100, 150);
        store.data("r", "a", 50, "x").shadow("r", "a", 50, 60);
        store.data("r", "a", 20, "y").shadow("r", "a", 20, 30);
        assertEquals(List.of(
                "r/f:@200 commit=- replaced=- PUT",
                "r/f:@100 commit=150 replaced=- FAMILY_TOMBSTONE",
                "r/f:a@50 commit=60 replaced=- PUT",
                "r/f:a@20 commit=30 replaced=60 PUT"),
                read(store, all(), RowFilter.ALL, 100, false, true));
    }

    /** Asked for traces, tombstones, cells without qualifier and shadow cells without data pass every filter. */
    @ParameterizedTest
    @ValueSource(ints = {2, 7, 1 << 16})
    void tracesPassEveryFilter(int limit) throws IOException {
        RowFilter early = new RowFilter.Tree(
                Condition.compare(Condition.Field.REPLACED, Condition.Comparison.LESS, 300));
        for (int seed = 0; seed < 50; seed++) {
            MemoryStore store = randomCells(new Random(seed), 3, 10);
            List<String> wanted = expected(store, RowFilter.ALL, false, true).stream()
                    .filter(row -> !row.endsWith(" PUT") || row.contains(":@")
                            || row.matches(".* replaced=([12]?[0-9]{1,2}) PUT")).toList();
            List<String> actual = new ArrayList<>();
            try (VersionReader reader = new VersionReader(store, all(), tally(), early, false, true, true, null,
                    limit)) {
                while (reader.next()) {
                    actual.add(text(reader.row(), reader.family(), reader.qualifier(), reader.timestamp(),
                            reader.commit(), reader.replaced(), reader.kind(), reader.value(), reader.problem()));
                }
            }
            assertSameRows(wanted, actual, "seed " + seed);
        }
    }

    /** An empty range has no rows. */
    @Test
    void readsNothing() throws IOException {
        assertTrue(read(new MemoryStore(new Random(1), 5), all(), RowFilter.ALL, 10, true, true).isEmpty());
    }
}
