package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptor;
import org.apache.hadoop.hbase.client.IsolationLevel;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.io.hfile.BlockCache;
import org.apache.hadoop.hbase.io.hfile.BlockCacheFactory;
import org.apache.hadoop.hbase.mob.MobFileCache;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.RegionScanner;
import org.apache.hadoop.hbase.regionserver.ScannerContext;
import org.apache.hadoop.hbase.regionserver.Shipper;
import org.apache.hadoop.hbase.regionserver.Store;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/**
 * Cells of one region of an HBase snapshot, read from its files. The region is opened read only, as
 * {@code ClientSideRegionScanner} does it, and closed with the store; it leaves nothing in the restore folder.
 */
final class FileStore implements CellStore {
    private static final int BATCH_CELLS = 1000;
    private static final long BATCH_BYTES = 4L << 20;

    private final Pacer pacer;
    private final HRegion region;
    private final BlockCache blockCache;
    private final MobFileCache mobFileCache;
    private final boolean mob;

    /**
     * @param count how many files the region has in the HBase snapshot; HBase opens what it finds, and with fewer rows
     *        would be missing
     */
    FileStore(Map<String, String> options, Path restored, TableDescriptor descriptor, RegionInfo info, int count,
            Pacer pacer) throws IOException {
        this.pacer = pacer;
        Configuration configuration = configuration(options);
        FileSystem files = restored.getFileSystem(configuration);
        mob = Arrays.stream(descriptor.getColumnFamilies()).anyMatch(ColumnFamilyDescriptor::isMobEnabled);
        TableDescriptor readOnly = TableDescriptorBuilder.newBuilder(descriptor).setReadOnly(true).build();
        region = HRegion.newHRegion(CommonFSUtils.getTableDir(restored, readOnly.getTableName()), null, files,
                configuration, info, readOnly, null);
        region.setRestoredRegion(true);
        blockCache = BlockCacheFactory.createBlockCache(configuration);
        region.setBlockCache(blockCache);
        mobFileCache = new MobFileCache(configuration);
        region.setMobFileCache(mobFileCache);
        boolean opened = false;
        try {
            region.initialize();
            int found = region.getStores().stream().mapToInt(Store::getStorefilesCount).sum();
            if (found != count) {
                throw new IOException("region " + info.getEncodedName() + " has " + found + " files in " + restored
                        + ", and had " + count + " in the HBase snapshot: its folder was removed while it was read."
                        + " Read again");
            }
            opened = true;
        } finally {
            if (!opened) {
                close();
            }
        }
    }

    /** The configuration for regions outside a region server. */
    static Configuration configuration(Map<String, String> options) {
        Configuration configuration = Connections.configuration(options);
        // A region that is only read has no use for the memstore's pool, and would leak its part of it at close.
        configuration.setBoolean("hbase.hregion.memstore.mslab.enabled", false);
        // Index blocks only: data blocks are read once.
        configuration.set(BlockCacheFactory.BLOCKCACHE_POLICY_KEY, "IndexOnlyLRU");
        configuration.setIfUnset(HConstants.HFILE_ONHEAP_BLOCK_CACHE_FIXED_SIZE_KEY,
                String.valueOf(HConstants.HBASE_CLIENT_SCANNER_ONHEAP_BLOCK_CACHE_FIXED_SIZE_DEFAULT));
        configuration.unset(HConstants.BUCKET_CACHE_IOENGINE_KEY);
        return configuration;
    }

    HRegion region() {
        return region;
    }

    @Override
    public CellSource open(Scan scan) throws IOException {
        scan.setIsolationLevel(IsolationLevel.READ_UNCOMMITTED)
                .setCacheBlocks(false)
                .setReadType(Scan.ReadType.STREAM);
        return new Source(region.getScanner(scan), mob, pacer);
    }

    @Override
    public void close() throws IOException {
        try {
            region.close(true);
        } finally {
            mobFileCache.shutdown();
            if (blockCache != null) {
                blockCache.shutdown();
            }
            pacer.end();
        }
    }

    private static final class Source implements CellSource {
        private final RegionScanner scanner;
        private final boolean mob;
        private final Pacer pacer;
        private final ScannerContext context;
        private final ArrayList<Cell> batch = new ArrayList<>(BATCH_CELLS);
        private Cell[] cells = new Cell[BATCH_CELLS];
        private boolean more = true;

        Source(RegionScanner scanner, boolean mob, Pacer pacer) {
            this.scanner = scanner;
            this.mob = mob;
            this.pacer = pacer;
            this.context = ScannerContext.newBuilder()
                    .setBatchLimit(pacer.portion(BATCH_CELLS))
                    .setSizeLimit(ScannerContext.LimitScope.BETWEEN_CELLS, BATCH_BYTES, BATCH_BYTES, Long.MAX_VALUE)
                    .build();
        }

        @Override
        public boolean advance() throws IOException {
            batch.clear();
            while (more && batch.isEmpty()) {
                pacer.beforeRead(() -> { }); // nobody's lease
                if (mob && scanner instanceof Shipper server) {
                    server.shipped(); // else what each large value was read with stays open to the region's end
                }
                more = scanner.nextRaw(batch, context);
                pacer.read(batch.size());
            }
            if (batch.isEmpty()) {
                return false;
            }
            cells = batch.toArray(cells);
            return true;
        }

        @Override
        public Cell[] cells() {
            return cells;
        }

        @Override
        public int size() {
            return batch.size();
        }

        @Override
        public void close() throws IOException {
            scanner.close();
        }
    }
}
