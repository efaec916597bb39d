package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.mob.MobUtils;
import org.apache.hadoop.hbase.shaded.protobuf.ProtobufUtil;
import org.apache.hadoop.hbase.shaded.protobuf.generated.SnapshotProtos.SnapshotDescription;
import org.apache.hadoop.hbase.shaded.protobuf.generated.SnapshotProtos.SnapshotRegionManifest;
import org.apache.hadoop.hbase.snapshot.RestoreSnapshotHelper;
import org.apache.hadoop.hbase.snapshot.SnapshotDescriptionUtils;
import org.apache.hadoop.hbase.snapshot.SnapshotManifest;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.CommonFSUtils;

/**
 * The files of an HBase snapshot whose references lie in a folder of their own, from where regions can be opened
 * without HBase. They are made once a JVM, HBase snapshot and restore folder, in a folder with a unique name; it goes
 * when the JVM ends, or with the restore folder.
 */
final class RestoredFiles {
    private static final Map<String, RestoredFiles> MADE = new HashMap<>();

    private final Path folder;
    private final TableDescriptor descriptor;
    private final List<Region> regions;

    /** A region with the bytes and the number of its files, as the HBase snapshot's manifest has them. */
    record Region(RegionInfo info, long bytes, int files) {
    }

    private RestoredFiles(Path folder, TableDescriptor descriptor, List<Region> regions) {
        this.folder = folder;
        this.descriptor = descriptor;
        this.regions = regions;
    }

    /** The files of an HBase snapshot, restored; an error names what is missing. */
    static RestoredFiles of(Map<String, String> options, String name, String restoreDir, TableName table)
            throws IOException {
        Configuration configuration = FileStore.configuration(options);
        Path root = root(configuration);
        FileSystem files = root.getFileSystem(configuration);
        Path place = SnapshotDescriptionUtils.getCompletedSnapshotDir(name, root);
        if (!files.exists(place)) {
            throw new IllegalArgumentException("Unknown HBase snapshot: " + name + ". There is no " + place
                    + ". Make it with Admin.createSnapshot, and check hbase.rootdir = " + root + ".");
        }
        SnapshotDescription description = SnapshotDescriptionUtils.readSnapshotInfo(files, place);
        SnapshotManifest manifest = SnapshotManifest.open(configuration, files, place, description);
        TableDescriptor descriptor = manifest.getTableDescriptor();
        if (!descriptor.getTableName().equals(table)) {
            throw new IllegalArgumentException("HBase snapshot " + name + " is of table " + descriptor.getTableName()
                    + ", not of " + table + ".");
        }
        Path base = files.makeQualified(new Path(restoreDir));
        String key = String.join("\n", root.toString(), name, String.valueOf(description.getCreationTime()),
                base.toString());
        synchronized (MADE) {
            RestoredFiles made = MADE.get(key);
            if (made == null || !files.exists(made.folder)) {
                Path folder = new Path(base, name + "-" + UUID.randomUUID());
                checkOutside(root, folder);
                RestoreSnapshotHelper.copySnapshotForScanner(configuration, files, root, folder, name);
                files.deleteOnExit(folder);
                made = new RestoredFiles(folder, descriptor, regions(manifest));
                MADE.put(key, made);
            }
            return made;
        }
    }

    /** Forgets what was restored into a folder that is about to go. */
    static void forget(Path restoreDir, FileSystem files) {
        synchronized (MADE) {
            for (RestoredFiles made : List.copyOf(MADE.values())) {
                if (made.folder.getParent().equals(restoreDir)) {
                    files.cancelDeleteOnExit(made.folder);
                    MADE.values().remove(made);
                }
            }
        }
    }

    /** HBase's root folder, which has to be configured: its default is never the cluster's. */
    static Path root(Configuration configuration) throws IOException {
        String[] sources = configuration.getPropertySources(HConstants.HBASE_DIR);
        if (sources == null || sources.length == 0 || sources[sources.length - 1].endsWith("hbase-default.xml")) {
            throw new IllegalArgumentException("Option hbase.rootdir is missing. Reading HBase snapshots and scratch"
                    + " folders need the cluster's root folder: give hbase.rootdir as the cluster has it.");
        }
        return CommonFSUtils.getRootDir(configuration);
    }

    private static void checkOutside(Path root, Path folder) {
        if ((folder + "/").startsWith(root + "/")) {
            throw new IllegalArgumentException("Option restoreDir = " + folder.getParent() + " lies in HBase's root "
                    + root + ". Name a folder outside it; Admin.scratchDir makes one.");
        }
    }

    private static List<Region> regions(SnapshotManifest manifest) {
        TreeMap<byte[], Region> regions = new TreeMap<>(Bytes.BYTES_COMPARATOR);
        for (SnapshotRegionManifest region : manifest.getRegionManifests()) {
            RegionInfo info = ProtobufUtil.toRegionInfo(region.getRegionInfo());
            // Large values (MOB) lie in a region of their own that no row belongs to: where a cell refers to one, HBase
            // looks it up as it does on a server, or fails.
            if (info.isSplitParent() || info.isSplit() || info.getReplicaId() != RegionInfo.DEFAULT_REPLICA_ID
                    || MobUtils.isMobRegionInfo(info)) {
                continue;
            }
            long bytes = 0;
            int files = 0;
            for (SnapshotRegionManifest.FamilyFiles family : region.getFamilyFilesList()) {
                for (SnapshotRegionManifest.StoreFile file : family.getStoreFilesList()) {
                    bytes += file.getFileSize();
                    files++;
                }
            }
            regions.put(info.getStartKey(), new Region(info, bytes, files));
        }
        return new ArrayList<>(regions.values());
    }

    Path folder() {
        return folder;
    }

    TableDescriptor descriptor() {
        return descriptor;
    }

    /** The regions, by start row. */
    List<Region> regions() {
        return regions;
    }

    /** Up to {@code parts - 1} rows of a region that cut [start, stop) evenly by the bytes of its files. */
    List<byte[]> cuts(Map<String, String> options, String encodedName, byte[] start, byte[] stop, int parts)
            throws IOException {
        Region region = regions.stream().filter(each -> each.info.getEncodedName().equals(encodedName)).findFirst()
                .orElseThrow();
        try (FileStore store = new FileStore(options, folder, descriptor, region.info, region.files,
                new Pacer(0, nanos -> 0))) { // rows alone, to cut it by
            return new RegionFiles(store.region()).cuts(start, stop, parts);
        }
    }
}
