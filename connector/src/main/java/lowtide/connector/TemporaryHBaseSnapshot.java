package lowtide.connector;

import java.io.IOException;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.SnapshotType;

/**
 * An HBase snapshot for one read, and the folder with its references. Both go when the read is not referenced any
 * more, or when the driver ends. Of a driver that is killed the HBase snapshot stays until HBase removes it after
 * {@link #LASTING_SECONDS}, and the folder, a small file for each store file, until the next read of a table finds it
 * to be twice as old.
 */
final class TemporaryHBaseSnapshot implements Runnable {
    /** A read that lasts longer fails for want of its files: each region is opened with as many as it had. */
    static final long LASTING_SECONDS = TimeUnit.DAYS.toSeconds(1);

    private static final String PREFIX = "lowtide-read-";
    /** Characters of the table in the name of the folder, which file systems limit. */
    private static final int MOST_OF_A_NAME = 100;

    private final Map<String, String> hbase;
    private final String name;
    private final String folder;

    private TemporaryHBaseSnapshot(Map<String, String> hbase, String name, String folder) {
        this.hbase = hbase;
        this.name = name;
        this.folder = folder;
    }

    /** Makes it, memstore included, and reads the mark once more; it lasts as long as the reader is referenced. */
    static RestoredFiles take(Options options, AsOf asOf, Object reader) throws IOException {
        Connection connection = Connections.get(options.hbase);
        String table = options.table.replaceAll("[^A-Za-z0-9]", "-");
        sweep(options);
        String name = PREFIX + table.substring(0, Math.min(table.length(), MOST_OF_A_NAME)) + "-"
                + UUID.randomUUID();
        String folder = Admin.scratchDir(options.hbase, name);
        TemporaryHBaseSnapshot taken = new TemporaryHBaseSnapshot(options.hbase, name, folder);
        try {
            taken.make(connection, options);
            // After this look nothing can overtake the read any more.
            asOf.checkMark(options, AsOf.OVERTAKEN);
            RestoredFiles restored = RestoredFiles.of(options.hbase, name, taken.folder, options.tableName());
            asOf.checkSame(options);
            Endings.with(reader, taken);
            return restored;
        } catch (IOException | RuntimeException e) {
            taken.run();
            throw e;
        }
    }

    /** Removes the folders of reads whose driver was killed, as far as this user may. */
    private static void sweep(Options options) {
        try {
            ScratchFolders.sweepUnique(Connections.configuration(options.hbase), PREFIX,
                    TimeUnit.SECONDS.toMillis(2 * LASTING_SECONDS));
        } catch (IOException | RuntimeException e) {
            // Somebody else's read finds them, or they stay.
        }
    }

    private void make(Connection connection, Options options) throws IOException {
        try (org.apache.hadoop.hbase.client.Admin admin = connection.getAdmin()) {
            admin.snapshot(name, options.tableName(), SnapshotType.FLUSH, Map.of("TTL", LASTING_SECONDS));
        } catch (IOException e) {
            throw new IOException("no HBase snapshot of it can be made (" + e.getMessage()
                    + "). Try again if another one was being made; allow HBase snapshots (hbase.snapshot.enabled, ADMIN"
                    + " permission), or leave read = snapshot out", e);
        }
    }

    @Override
    public void run() {
        try {
            Admin.dropSnapshot(hbase, name);
        } catch (IOException | RuntimeException e) {
            // HBase removes it in time.
        }
        try {
            Admin.dropScratchDir(hbase, folder);
        } catch (IOException | RuntimeException e) {
            // It holds nothing but references.
        }
    }
}
