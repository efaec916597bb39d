package lowtide.connector;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.hbase.DoNotRetryIOException;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.Size;
import org.apache.hadoop.hbase.TableExistsException;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.CompactionState;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.encoding.DataBlockEncoding;
import org.apache.hadoop.hbase.regionserver.BloomType;
import org.apache.hadoop.hbase.snapshot.SnapshotExistsException;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * What jobs ask of HBase beside reading and writing; called by the driver. Every method takes the {@code hbase.*}
 * options first and waits until the thing is done. Errors name the table or HBase snapshot.
 */
public final class Admin {
    private static final long POLL_MILLIS = 200;
    /** Where what tells the end tells the beginning too; of a small table it is soon there. */
    private static final long FIRST_POLL_MILLIS = 25;
    private static final long ASK_AGAIN_MILLIS = 10_000;
    /** Said of a compaction after the milliseconds that it was given. */
    private static final String NOT_DONE = " ms. Where it goes on, run again later; where HBase begins none"
            + " (compaction_switch, in its shell), let it first.";
    /** In the place of a time: a region without files has nothing to compact. */
    static final long WITHOUT_FILES = Long.MAX_VALUE;

    private Admin() {
    }

    /** The report of a committed write as JSON, once. See the option {@code writeId}. */
    public static String takeReport(String writeId) {
        return WriteReport.take(writeId);
    }

    /** When the table was made, enabled or disabled last, in ms; 0 where there is none. See {@link Tables#stated}. */
    public static long stated(Map<String, String> options, String table) throws IOException {
        return Tables.stated(Connections.get(options), Options.tableName(table));
    }

    /** JSON of the same of several tables, asked at once. */
    public static String statedOf(Map<String, String> options, List<String> tables) throws IOException {
        Map<String, Long> stated = new TreeMap<>();
        Tables.stated(Connections.get(options), tables.stream().map(Options::tableName).toList())
                .forEach((name, at) -> stated.put(name.getNameAsString(), at));
        return new ObjectMapper().writeValueAsString(stated);
    }

    /** JSON of {@link Tables#opened}: by which table's settings each region may be run. */
    public static String opened(Map<String, String> options, String table) throws IOException {
        return new ObjectMapper().writeValueAsString(
                Tables.opened(Connections.get(options), Options.tableName(table)));
    }

    /** See {@link ScratchFolders#make}. */
    public static String scratchDir(Map<String, String> options, String name) throws IOException {
        return ScratchFolders.make(Connections.configuration(options), name);
    }

    /** See {@link ScratchFolders#drop}. */
    public static void dropScratchDir(Map<String, String> options, String path) throws IOException {
        ScratchFolders.drop(Connections.configuration(options), path);
    }

    /** See {@link ScratchFolders#sweep}. */
    public static void sweepScratchDirs(Map<String, String> options, String prefix, long olderThanMillis)
            throws IOException {
        ScratchFolders.sweep(Connections.configuration(options), prefix, olderThanMillis);
    }

    /** Takes an HBase snapshot of an enabled table, its memstore flushed. */
    public static void createSnapshot(Map<String, String> options, String table, String name) throws IOException {
        Connection connection = Connections.get(options);
        TableName tableName = Options.tableName(table);
        Tables.enabled(connection, tableName);
        try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
            admin.snapshot(name, tableName);
        } catch (SnapshotExistsException e) {
            throw new IllegalArgumentException("HBase snapshot " + name + " of table " + table
                    + " exists already. Drop it, or choose another name.", e);
        } catch (IOException e) {
            throw new IOException("HBase snapshot " + name + " of table " + table + " failed: " + e.getMessage(), e);
        }
    }

    /** Drops an HBase snapshot; no-op if there is none. */
    public static void dropSnapshot(Map<String, String> options, String name) throws IOException {
        try (org.apache.hadoop.hbase.client.Admin admin = Connections.get(options).getAdmin()) {
            if (admin.listSnapshots().stream().anyMatch(snapshot -> snapshot.getName().equals(name))) {
                admin.deleteSnapshot(name);
            }
        }
    }

    /** Writes the memstore of a table to files. */
    public static void flush(Map<String, String> options, String table) throws IOException {
        Connection connection = Connections.get(options);
        Tables.enabled(connection, Options.tableName(table));
        try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
            admin.flush(Options.tableName(table));
        }
    }

    /** How durably clients write to a table, unless they say so themselves: the name of HBase's {@code Durability}. */
    public static String durability(Map<String, String> options, String table) throws IOException {
        return Tables.enabled(Connections.get(options), Options.tableName(table)).getDurability().name();
    }

    /** A value of a table's own descriptor, not of its families; null where it has none, or there is no such table. */
    public static String attribute(Map<String, String> options, String table, String name) throws IOException {
        try (org.apache.hadoop.hbase.client.Admin admin = Connections.get(options).getAdmin()) {
            return admin.getDescriptor(Options.tableName(table)).getValue(name);
        } catch (TableNotFoundException e) {
            return null;
        }
    }

    /**
     * Makes a table with one family, for rows that are much alike; no-op if the table is there, whatever its families.
     */
    public static void createTable(Map<String, String> options, String table, String family, int versions)
            throws IOException {
        try (org.apache.hadoop.hbase.client.Admin admin = Connections.get(options).getAdmin()) {
            TableName name = Options.tableName(table);
            if (!admin.tableExists(name)) {
                admin.createTable(TableDescriptorBuilder.newBuilder(name)
                        .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(Bytes.toBytes(family))
                                .setMaxVersions(versions).setDataBlockEncoding(DataBlockEncoding.FAST_DIFF).build())
                        .build());
            }
        } catch (TableExistsException e) {
            // Somebody else made it in between: there it is.
        }
    }

    /**
     * Gives families a bloom filter over rows, where they have none, and the block cache. The table stays enabled: its
     * regions are opened again, one after the other. Files that are there get their filter when they are compacted.
     * What somebody else alters of the table meanwhile stays.
     */
    public static void giveBloomAndCache(Map<String, String> options, String table, List<String> families)
            throws IOException {
        TableName name = Options.tableName(table);
        try (org.apache.hadoop.hbase.client.Admin admin = Connections.get(options).getAdmin()) {
            TableDescriptor before = admin.getDescriptor(name);
            for (String each : families) {
                ColumnFamilyDescriptor family = before.getColumnFamily(Bytes.toBytes(each));
                if (family == null) {
                    throw new IllegalArgumentException("Table " + table + " has no family " + each + ".");
                }
                BloomType bloom = family.getBloomFilterType();
                ColumnFamilyDescriptor after = ColumnFamilyDescriptorBuilder.newBuilder(family)
                        .setBloomFilterType(bloom == BloomType.NONE ? BloomType.ROW : bloom)
                        .setBlockCacheEnabled(true).build();
                if (!after.equals(family)) {
                    admin.modifyColumnFamily(name, after);
                }
            }
        }
    }

    /**
     * Compacts a table, or one family of it, into one file a store, which drops delete markers and what they hide. The
     * memstore is flushed first. Waits until it is done; {@link IOException} after {@code timeoutMillis}.
     *
     * <p>A compaction that was running already makes HBase compact only a part, so it is asked again until every
     * region with files reports a newer major compaction. Regions report for all their families together: for one
     * family of several, the end of the compaction is all that can be waited for.
     */
    public static void majorCompact(Map<String, String> options, String table, String family, long timeoutMillis)
            throws IOException {
        Connection connection = Connections.get(options);
        TableName name = Options.tableName(table);
        TableDescriptor descriptor = compactable(connection, name);
        if (family != null && !descriptor.hasColumnFamily(Bytes.toBytes(family))) {
            throw new IllegalArgumentException("Table " + table + " has no family " + family + ".");
        }
        boolean whole = family == null || descriptor.getColumnFamilyCount() == 1;
        long start = System.nanoTime();
        long pause = whole ? FIRST_POLL_MILLIS : POLL_MILLIS;
        try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
            Tables.waitedFor(connection, "flushing a table", () -> {
                admin.flush(name);
                return null;
            });
            Map<String, Long> before = whole ? majorCompactions(connection, name) : Map.of();
            while (true) {
                boolean asked = heard(() -> {
                    if (family == null) {
                        admin.majorCompact(name);
                    } else {
                        admin.majorCompact(name, Bytes.toBytes(family));
                    }
                });
                long since = System.nanoTime();
                do {
                    if (millisSince(start) > timeoutMillis) {
                        throw new IOException("Major compaction of table " + table + " is not done after "
                                + timeoutMillis + NOT_DONE);
                    }
                    Pause.millis(pause, "waiting for a compaction");
                    pause = Math.min(2 * pause, POLL_MILLIS);
                    CompactionState state = compacting(admin, name);
                    asked = asked && state != null; // a server that died has given its part up
                    if (asked && state == CompactionState.NONE
                            && (!whole || majorCompactions(connection, name).entrySet().stream()
                                    .allMatch(now -> newer(now.getValue(), before.get(now.getKey()))))) {
                        return;
                    }
                } while (millisSince(since) < ASK_AGAIN_MILLIS || compacting(admin, name) != CompactionState.NONE);
            }
        }
    }

    /**
     * Major-compacts families of some regions of a table and waits; each region is flushed first. {@link IOException}
     * after {@code timeoutMillis}.
     *
     * <p>Regions report for all their families together. Where all are to be compacted they are asked again until a
     * newer major compaction is reported; where only some are, no other compaction may be running when they are asked,
     * because HBase would leave out its files, and the end of the compaction is all that can be waited for. A region
     * about which nothing is learned is asked for its compaction again: one on its way to another server gives it up.
     *
     * @param families by encoded name of the region
     * @return JSON, by region that is still there: bytes on disk before and after, as HBase counts them (whole MiB)
     */
    public static String compactRegions(Map<String, String> options, String table, Map<String, List<String>> families,
            long timeoutMillis) throws IOException {
        Connection connection = Connections.get(options);
        TableName name = Options.tableName(table);
        int all = compactable(connection, name).getColumnFamilyCount();
        long start = System.nanoTime();
        try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
            Set<String> there = listed(connection, name);
            there.retainAll(families.keySet());
            for (String region : there) {
                Tables.waitedFor(connection, "flushing a region", () -> {
                    admin.flushRegion(Bytes.toBytes(region));
                    return null;
                });
            }
            Map<String, Long> sizes = sizes(connection, name);
            Map<String, Long> before = majorCompactions(connection, name);
            Set<String> waiting = new TreeSet<>(there);
            Set<String> asked = new HashSet<>();
            while (!waiting.isEmpty()) {
                for (String region : waiting) {
                    List<String> wanted = families.get(region);
                    CompactionState state = compacting(admin, region);
                    if (state == CompactionState.NONE
                            || state != null && wanted.size() == all && !asked.contains(region)) {
                        Asking asking = () -> {
                            for (String family : wanted) {
                                admin.majorCompactRegion(Bytes.toBytes(region), Bytes.toBytes(family));
                            }
                        };
                        if (heard(asking)) {
                            asked.add(region);
                        }
                    }
                }
                long since = System.nanoTime();
                do {
                    if (millisSince(start) > timeoutMillis) {
                        throw new IOException("Major compaction of regions " + waiting + " of table " + table
                                + " is not done after " + timeoutMillis + NOT_DONE);
                    }
                    Pause.millis(POLL_MILLIS, "waiting for a compaction");
                    // What was split or merged since it was listed HBase compacts by itself.
                    waiting.retainAll(listed(connection, name));
                    Map<String, Long> now = majorCompactions(connection, name);
                    for (String region : List.copyOf(waiting)) {
                        CompactionState state = compacting(admin, region);
                        if (state == null) {
                            asked.remove(region);
                        } else if (state == CompactionState.NONE && asked.contains(region)
                                && (families.get(region).size() < all
                                        || newer(now.get(region), before.get(region)))) {
                            waiting.remove(region);
                        }
                    }
                } while (!waiting.isEmpty() && millisSince(since) < ASK_AGAIN_MILLIS);
            }
            ObjectNode report = new ObjectMapper().createObjectNode();
            Map<String, Long> after = sizes(connection, name);
            for (String region : there) {
                if (after.containsKey(region)) {
                    report.putArray(region).add(sizes.getOrDefault(region, 0L)).add(after.get(region));
                }
            }
            return report.toString();
        }
    }

    /**
     * An enabled table that HBase compacts, without Omid's compactor, which loses rows whose family was deleted and
     * written again.
     */
    private static TableDescriptor compactable(Connection connection, TableName name) throws IOException {
        TableDescriptor table = Tables.enabled(connection, name);
        if (Omid.compacts(table)) {
            throw new IllegalArgumentException("Table " + name + " is not compacted: Omid's own compactor is on it, and"
                    + " it loses rows whose family was deleted and written again.");
        }
        if (!table.isCompactionEnabled()) {
            throw new IllegalArgumentException("Table " + name + " is not compacted: it has COMPACTION_ENABLED =>"
                    + " false, so that HBase begins no compaction. In HBase's shell: alter '" + name
                    + "', COMPACTION_ENABLED => 'true'; then run again.");
        }
        return table;
    }

    /** Asks for a compaction. */
    interface Asking {
        void ask() throws IOException;
    }

    /** Whether all servers heard that a compaction is asked for; one that did not may have died. */
    static boolean heard(Asking asking) throws IOException {
        try {
            asking.ask();
            return true;
        } catch (DoNotRetryIOException e) {
            throw e;
        } catch (IOException e) {
            return false;
        }
    }

    /** What a region's server compacts of it; null where nobody tells: it is to be asked again. */
    static CompactionState compacting(org.apache.hadoop.hbase.client.Admin admin, String region) {
        try {
            return admin.getCompactionStateForRegion(Bytes.toBytes(region));
        } catch (IOException | IllegalArgumentException | NullPointerException e) {
            // Of the latter two, which HBase's client throws, one means that hbase:meta has lost the region, the other
            // that the server has died.
            return null;
        }
    }

    /** What servers compact of a table; null where one of them does not tell. */
    static CompactionState compacting(org.apache.hadoop.hbase.client.Admin admin, TableName name) throws IOException {
        try {
            return admin.getCompactionState(name);
        } catch (DoNotRetryIOException e) {
            throw e;
        } catch (IOException | NullPointerException e) { // the latter as above
            return null;
        }
    }

    /**
     * Whether a region was major-compacted between two looks at {@link #majorCompactions}, or had nothing that could
     * be: no files at one of them. Null before: it was not there; now: it is open nowhere, so that nothing is known.
     */
    static boolean newer(Long now, Long before) {
        return now != null && (now == WITHOUT_FILES || before == null || before == WITHOUT_FILES || now > before);
    }

    /** The encoded names of the regions that the table has now. */
    private static Set<String> listed(Connection connection, TableName name) throws IOException {
        Set<String> names = new TreeSet<>();
        Tables.regions(connection, name).forEach(region -> names.add(region.getEncodedName()));
        return names;
    }

    private static Map<String, Long> sizes(Connection connection, TableName name) throws IOException {
        Map<String, Long> sizes = new HashMap<>();
        for (RegionMetrics region : Tables.served(connection, List.of(name)).metrics()) {
            sizes.put(RegionInfo.encodeRegionName(region.getRegionName()),
                    (long) region.getStoreFileSize().get(Size.Unit.BYTE));
        }
        return sizes;
    }

    /**
     * By encoded name of the region: when its oldest major-compacted file was made, 0 where none is, or {@link
     * #WITHOUT_FILES}.
     */
    private static Map<String, Long> majorCompactions(Connection connection, TableName name) throws IOException {
        Map<String, Long> times = new HashMap<>();
        for (RegionMetrics region : Tables.served(connection, List.of(name)).metrics()) {
            times.put(RegionInfo.encodeRegionName(region.getRegionName()),
                    region.getStoreFileCount() == 0 ? WITHOUT_FILES : region.getLastMajorCompactionTimestamp());
        }
        return times;
    }

    private static long millisSince(long nanos) {
        return (System.nanoTime() - nanos) / 1_000_000;
    }
}
