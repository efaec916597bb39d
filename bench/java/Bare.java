import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.KeyValue;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.CheckAndMutate;
import org.apache.hadoop.hbase.client.CheckAndMutateResult;
import org.apache.hadoop.hbase.client.ClientSideRegionScanner;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Delete;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.TimeRange;
import org.apache.hadoop.hbase.io.hfile.CacheConfig;
import org.apache.hadoop.hbase.io.hfile.HFileContextBuilder;
import org.apache.hadoop.hbase.regionserver.StoreFileWriter;
import org.apache.hadoop.hbase.snapshot.RestoreSnapshotHelper;
import org.apache.hadoop.hbase.tool.BulkLoadHFiles;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/**
 * What the connector is measured against: loops that read every cell and do nothing but count. Also makes the table.
 * One file, run by {@code java -cp ... Bare.java COMMAND ...}; settings of HBase come as {@code -Dhbase.*}.
 *
 * <pre>
 * load TABLE ROWS COLUMNS VALUE_BYTES REGIONS START   a table of committed cells, from timestamp START on; 1 row in 1,000 has no
 *                                                     shadow cells
 * day TABLE ROWS COLUMNS VALUE_BYTES REGIONS UPDATES START   of its ROWS rows UPDATES written again, from timestamp START on, in new files
 * history TABLE ROWS COLUMNS VALUE_BYTES REGIONS VERSIONS START   a table of so many committed versions of each cell;
 *                                              in every other region of 1 row in 100 only, one of the others; prints its cells
 * rpc TABLE THREADS ROUNDS                      scan the live table; a line "CELLS SECONDS" a round
 * snapshot TABLE THREADS ROUNDS                 ClientSideRegionScanner over an HBase snapshot's files; likewise
 * act TABLE ROWS COLUMNS START COMMITS FAMILY THREADS   what a cleanup does to a loaded table: a mark in the table COMMITS for each
 *                                               transaction without shadow cells, then its cells deleted, each under the guard that
 *                                               the job has; a line "MUTATIONS SECONDS"
 * </pre>
 */
public final class Bare {
    private static final byte[] FAMILY = Bytes.toBytes("f");
    private static final byte[] PREFIX = {0x00, (byte) 0xC2, (byte) 0x80};
    private static final byte[] SUFFIX = {(byte) 0xC2, (byte) 0x80};

    private final Configuration configuration = HBaseConfiguration.create();

    private Bare() {
        System.getProperties().forEach((name, value) -> {
            if (name.toString().startsWith("hbase.")) {
                configuration.set(name.toString(), value.toString());
            }
        });
        configuration.setBoolean("hbase.hregion.memstore.mslab.enabled", false);
    }

    public static void main(String[] arguments) throws Exception {
        Bare bare = new Bare();
        TableName table = TableName.valueOf(arguments[1]);
        switch (arguments[0]) {
            case "load":
                bare.load(table, Long.parseLong(arguments[2]), Integer.parseInt(arguments[3]),
                        Integer.parseInt(arguments[4]), Integer.parseInt(arguments[5]), Long.parseLong(arguments[6]));
                break;
            case "day":
                bare.day(table, Long.parseLong(arguments[2]), Integer.parseInt(arguments[3]),
                        Integer.parseInt(arguments[4]), Integer.parseInt(arguments[5]),
                        Long.parseLong(arguments[6]), Long.parseLong(arguments[7]));
                break;
            case "history":
                bare.history(table, Long.parseLong(arguments[2]), Integer.parseInt(arguments[3]),
                        Integer.parseInt(arguments[4]), Integer.parseInt(arguments[5]),
                        Integer.parseInt(arguments[6]), Long.parseLong(arguments[7]));
                break;
            case "rpc":
                bare.rpc(table, Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
                break;
            case "act":
                bare.act(table, Long.parseLong(arguments[2]), Integer.parseInt(arguments[3]), Long.parseLong(arguments[4]),
                        TableName.valueOf(arguments[5]), Bytes.toBytes(arguments[6]), Integer.parseInt(arguments[7]));
                break;
            case "snapshot":
                bare.snapshot(table, Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
                break;
            default:
                throw new IllegalArgumentException("unknown command " + arguments[0]);
        }
        System.exit(0);
    }

    /** Writes one file a region and hands it to HBase: cells as they are after a flush, without the wait. */
    private void load(TableName name, long rows, int columns, int valueBytes, int regions, long start)
            throws Exception {
        create(name, rows, regions);
        byte[] value = value(valueBytes);
        bulkLoad(name, regions, (writer, region) -> {
            for (long i = rows * region / regions; i < rows * (region + 1) / regions; i++) {
                write(writer, i, start + 100 * i, columns, value);
            }
        });
    }

    /** Every cell in so many versions, 100 apart and each committed 50 later; of a row newest first, as HBase sorts them. */
    private void history(TableName name, long rows, int columns, int valueBytes, int regions, int versions, long start)
            throws Exception {
        create(name, rows, regions);
        byte[] value = value(valueBytes);
        java.util.concurrent.atomic.AtomicLong cells = new java.util.concurrent.atomic.AtomicLong();
        bulkLoad(name, regions, (writer, region) -> {
            for (long i = rows * region / regions; i < rows * (region + 1) / regions; i++) {
                byte[] row = row(i);
                int count = region % 2 == 0 || i % 100 == 0 ? versions : 1;
                cells.addAndGet(2L * columns * count);
                for (int column = 0; column < columns; column++) {
                    byte[] shadow = Bytes.add(PREFIX, qualifier(column), SUFFIX);
                    for (int version = count - 1; version >= 0; version--) {
                        long at = start + 100 * (i * versions + version);
                        writer.append(new KeyValue(row, FAMILY, shadow, at, Bytes.toBytes(at + 50)));
                    }
                }
                for (int column = 0; column < columns; column++) {
                    for (int version = count - 1; version >= 0; version--) {
                        writer.append(new KeyValue(row, FAMILY, qualifier(column),
                                start + 100 * (i * versions + version), value));
                    }
                }
            }
        });
        System.out.println(cells);
    }

    private void create(TableName name, long rows, int regions) throws IOException {
        byte[][] splits = new byte[regions - 1][];
        for (int i = 1; i < regions; i++) {
            splits[i - 1] = row(rows * i / regions);
        }
        try (Connection connection = ConnectionFactory.createConnection(configuration);
                Admin admin = connection.getAdmin()) {
            admin.createTable(TableDescriptorBuilder.newBuilder(name)
                    .setColumnFamily(ColumnFamilyDescriptorBuilder.newBuilder(FAMILY)
                            .setMaxVersions(Integer.MAX_VALUE)
                            .setValue("OMID_ENABLED", "true").build())
                    .build(), splits);
        }
    }

    private void day(TableName name, long rows, int columns, int valueBytes, int regions, long updates, long start)
            throws Exception {
        byte[] value = value(valueBytes);
        bulkLoad(name, regions, (writer, region) -> {
            for (long n = updates * region / regions; n < updates * (region + 1) / regions; n++) {
                write(writer, n * rows / updates, start + 100 * n, columns, value);
            }
        });
    }

    private static byte[] value(int bytes) {
        byte[] value = new byte[bytes];
        new Random(1).nextBytes(value);
        return value;
    }

    /** Writes one part of a bulk load. */
    private interface Part {
        void write(StoreFileWriter writer, int number) throws IOException;
    }

    private void bulkLoad(TableName name, int parts, Part part) throws Exception {
        Path root = CommonFSUtils.getRootDir(configuration);
        FileSystem files = root.getFileSystem(configuration);
        Path folder = new Path(root.getParent(), "bulk-" + UUID.randomUUID());
        for (int number = 0; number < parts; number++) {
            Path file = new Path(new Path(folder, Bytes.toString(FAMILY)), "part" + number);
            // Not a bare HFile: only a store file tells its time range, by which scans leave it out.
            StoreFileWriter writer = new StoreFileWriter.Builder(configuration, new CacheConfig(configuration), files)
                    .withFilePath(file)
                    .withFileContext(new HFileContextBuilder().withBlockSize(64 << 10).build())
                    .build();
            part.write(writer, number);
            writer.appendMetadata(1, false);
            writer.close();
        }
        BulkLoadHFiles.create(configuration).bulkLoad(name, folder);
        files.delete(folder, true);
    }

    private static byte[] row(long i) {
        return Bytes.toBytes(String.format("user%012d", i));
    }

    /** Whether the row's transaction never committed. */
    private static boolean isOrphan(long i) {
        return i % 1000 == 999;
    }

    private static void write(StoreFileWriter writer, long i, long start, int columns, byte[] value)
            throws IOException {
        byte[] row = row(i);
        if (!isOrphan(i)) {
            byte[] commit = Bytes.toBytes(start + 50);
            for (int column = 0; column < columns; column++) {
                writer.append(new KeyValue(row, FAMILY, Bytes.add(PREFIX, qualifier(column), SUFFIX), start, commit));
            }
        }
        for (int column = 0; column < columns; column++) {
            writer.append(new KeyValue(row, FAMILY, qualifier(column), start, value));
        }
    }

    private static byte[] qualifier(int column) {
        return Bytes.toBytes(String.format("column%03d", column));
    }

    /** Counts the cells of one region. */
    private interface Counter {
        long count(RegionInfo region) throws IOException;
    }

    private static void rounds(List<RegionInfo> regions, int threads, int rounds, Counter counter) throws Exception {
        for (int round = 0; round < rounds; round++) {
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            long begin = System.nanoTime();
            List<Future<Long>> counts = new ArrayList<>();
            for (RegionInfo region : regions) {
                counts.add(pool.submit(() -> counter.count(region)));
            }
            long cells = 0;
            for (Future<Long> count : counts) {
                cells += count.get();
            }
            System.out.println(cells + " " + (System.nanoTime() - begin) / 1e9);
            pool.shutdown();
        }
    }

    private void rpc(TableName name, int threads, int rounds) throws Exception {
        try (Connection connection = ConnectionFactory.createConnection(configuration);
                Admin admin = connection.getAdmin()) {
            rounds(admin.getRegions(name), threads, rounds, region -> {
                Scan scan = new Scan().withStartRow(region.getStartKey()).withStopRow(region.getEndKey())
                        .readAllVersions().setCaching(Integer.MAX_VALUE).setCacheBlocks(false)
                        .setReadType(Scan.ReadType.STREAM);
                long cells = 0;
                try (Table table = connection.getTable(name); ResultScanner scanner = table.getScanner(scan)) {
                    for (Result result = scanner.next(); result != null; result = scanner.next()) {
                        cells += result.rawCells().length;
                    }
                }
                return cells;
            });
        }
    }

    private void act(TableName name, long rows, int columns, long first, TableName commits, byte[] family, int threads)
            throws Exception {
        List<CheckAndMutate> marks = new ArrayList<>();
        List<CheckAndMutate> deletes = new ArrayList<>();
        for (long i = 0; i < rows; i++) {
            long start = first + 100 * i;
            if (!isOrphan(i)) {
                continue;
            }
            byte[] key = Bytes.add(new byte[] {(byte) (start & 15)}, Bytes.toBytes(start));
            marks.add(CheckAndMutate.newBuilder(key).ifNotExists(family, Bytes.toBytes("C"))
                    .build(new Put(key).addColumn(family, Bytes.toBytes("IT"), start, new byte[] {0, 0, 0, 2})));
            for (int column = 0; column < columns; column++) {
                deletes.add(CheckAndMutate.newBuilder(row(i))
                        .ifNotExists(FAMILY, Bytes.add(PREFIX, qualifier(column), SUFFIX))
                        .timeRange(TimeRange.between(start, start + 1))
                        .build(new Delete(row(i)).addColumn(FAMILY, qualifier(column), start)));
            }
        }
        try (Connection connection = ConnectionFactory.createConnection(configuration)) {
            long begin = System.nanoTime();
            send(connection, commits, marks, threads); // each is there before any cell goes
            send(connection, name, deletes, threads);
            System.out.println(marks.size() + deletes.size() + " " + (System.nanoTime() - begin) / 1e9);
        }
    }

    private static void send(Connection connection, TableName name, List<CheckAndMutate> all, int threads)
            throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Future<Void>> sent = new ArrayList<>();
        for (int from = 0; from < all.size(); from += 1000) {
            List<CheckAndMutate> some = all.subList(from, Math.min(from + 1000, all.size()));
            sent.add(pool.submit(() -> {
                try (Table table = connection.getTable(name)) {
                    for (CheckAndMutateResult result : table.checkAndMutate(some)) {
                        if (!result.isSuccess()) {
                            throw new IllegalStateException("refused, at " + name);
                        }
                    }
                }
                return null;
            }));
        }
        for (Future<Void> each : sent) {
            each.get();
        }
        pool.shutdown();
    }

    private void snapshot(TableName name, int threads, int rounds) throws Exception {
        Path root = CommonFSUtils.getRootDir(configuration);
        FileSystem files = root.getFileSystem(configuration);
        Path folder = new Path(root.getParent(), "bare-" + UUID.randomUUID());
        String snapshot = "bare-" + UUID.randomUUID();
        try (Connection connection = ConnectionFactory.createConnection(configuration);
                Admin admin = connection.getAdmin()) {
            admin.snapshot(snapshot, name);
            try {
                RestoreSnapshotHelper.copySnapshotForScanner(configuration, files, root, folder, snapshot);
                TableDescriptor descriptor = admin.getDescriptor(name);
                rounds(admin.getRegions(name), threads, rounds, region -> {
                    long cells = 0;
                    try (ClientSideRegionScanner scanner = new ClientSideRegionScanner(
                            new Configuration(configuration), files, folder, descriptor, region,
                            new Scan().readAllVersions().setCacheBlocks(false), null)) {
                        for (Result result = scanner.next(); result != null; result = scanner.next()) {
                            for (Cell ignored : result.rawCells()) {
                                cells++;
                            }
                        }
                    }
                    return cells;
                });
            } finally {
                admin.deleteSnapshot(snapshot);
                files.delete(folder, true);
            }
        }
    }
}
