package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.RegionMetrics;
import org.apache.hadoop.hbase.Size;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.TableDescriptor;
import org.apache.hadoop.hbase.util.Bytes;

/** Cuts a read into pieces: by the regions or the ranges that were asked for, and large ones by size. */
final class Planner {
    private final Options options;
    private final Pushdown pushdown;

    /** A region as it is at planning: rows [start, stop), its bytes on disk, and where to read it. */
    private record Region(String id, byte[] start, byte[] stop, long bytes, String server,
            Piece.FileRegion files) {
    }

    /** Finds up to {@code parts - 1} rows that cut [start, stop) into parts of about the same size. */
    private interface Cuts {
        List<byte[]> find(Region region, byte[] start, byte[] stop, int parts) throws IOException;
    }

    Planner(Options options, Pushdown pushdown) {
        this.options = options;
        this.pushdown = pushdown;
    }

    List<Piece> pieces() throws IOException {
        if (options.readsFiles) {
            return pieces(RestoredFiles.of(options.hbase, options.requiredSnapshot(), options.requiredRestoreDir(),
                    options.tableName()));
        }
        List<Options.TableRead> reads = options.tables != null ? options.tables
                : List.of(new Options.TableRead(options.tableName().getNameAsString(), null, options.ranges));
        return livePieces(Connections.get(options.hbase), reads);
    }

    private List<Piece> livePieces(Connection connection, List<Options.TableRead> reads) throws IOException {
        List<TableName> names = reads.stream().map(Options.TableRead::name).toList();
        Map<TableName, TableDescriptor> descriptors = Tables.enabled(connection, names);
        Tables.Served served = Tables.served(connection, names);
        Map<String, Long> sizes = new HashMap<>();
        for (RegionMetrics metrics : served.metrics()) {
            sizes.put(RegionInfo.encodeRegionName(metrics.getRegionName()),
                    (long) metrics.getStoreFileSize().get(Size.Unit.BYTE));
        }
        List<Piece> pieces = new ArrayList<>();
        for (Options.TableRead read : reads) {
            TableName name = read.name();
            try (TableProbe probe = new TableProbe(connection, name)) {
                pieces.addAll(pieces(read, liveRegions(name, served.locations().get(name), sizes),
                        families(descriptors.get(name), read.families()),
                        (region, start, stop, parts) -> probe.cuts(start, stop, parts)));
            }
        }
        return pieces;
    }

    List<Piece> pieces(RestoredFiles files) throws IOException {
        checkCovered(options.tableName(), files.regions().stream().map(RestoredFiles.Region::info).toList());
        List<Region> regions = new ArrayList<>();
        byte[] descriptor = org.apache.hadoop.hbase.client.TableDescriptorBuilder.toByteArray(files.descriptor());
        for (RestoredFiles.Region region : files.regions()) {
            RegionInfo info = region.info();
            regions.add(new Region(info.getEncodedName(), info.getStartKey(), info.getEndKey(), region.bytes(), null,
                    new Piece.FileRegion(files.folder().toString(), descriptor, RegionInfo.toByteArray(info),
                            region.files())));
        }
        return pieces(new Options.TableRead(options.table, null, options.ranges), regions,
                families(files.descriptor(), null),
                (region, start, stop, parts) -> files.cuts(options.hbase, region.id(), start, stop, parts));
    }

    private byte[][] families(TableDescriptor descriptor, List<String> wanted) {
        return Arrays.stream(descriptor.getColumnFamilies())
                .filter(family -> wanted == null || wanted.contains(family.getNameAsString()))
                .map(org.apache.hadoop.hbase.client.ColumnFamilyDescriptor::getName)
                .filter(family -> pushdown.families == null || pushdown.families.contains(family))
                .toArray(byte[][]::new);
    }

    private static List<Region> liveRegions(TableName name, List<HRegionLocation> locations, Map<String, Long> sizes)
            throws IOException {
        checkCovered(name, locations.stream().map(HRegionLocation::getRegion).toList());
        List<Region> regions = new ArrayList<>();
        for (HRegionLocation location : locations) {
            RegionInfo info = location.getRegion();
            regions.add(new Region(info.getEncodedName(), info.getStartKey(), info.getEndKey(),
                    sizes.getOrDefault(info.getEncodedName(), 0L), host(location), null));
        }
        return regions;
    }

    /**
     * The machine on which a region is open; null where it is open nowhere, as a daughter is that a split has just
     * made. Whoever reads it waits for it.
     */
    static String host(HRegionLocation location) {
        return location.getServerName() == null ? null : location.getHostname();
    }

    /**
     * Fails where the regions do not follow each other from the first row to the last: what lies in a gap would be
     * missing from the read without a word.
     */
    static void checkCovered(TableName table, List<RegionInfo> regions) throws IOException {
        List<RegionInfo> sorted = regions.stream().sorted(RegionInfo.COMPARATOR).toList();
        for (int i = 0; i <= sorted.size(); i++) {
            boolean first = i == 0;
            boolean last = i == sorted.size();
            byte[] reached = first ? HConstants.EMPTY_START_ROW : sorted.get(i - 1).getEndKey();
            byte[] next = last ? HConstants.EMPTY_END_ROW : sorted.get(i).getStartKey();
            // An empty key is right at both ends and nowhere else.
            if (sorted.isEmpty() || !Arrays.equals(reached, next) || reached.length == 0 != (first || last)) {
                throw new IOException("the regions of table " + table + " leave a gap or overlap: behind "
                        + place(reached, first) + " the next begins at " + place(next, !last)
                        + ". Look at the master's page for regions in transition, and read again");
            }
        }
    }

    private static String place(byte[] key, boolean begins) {
        return key.length > 0 ? "row " + Bytes.toStringBinary(key) : begins ? "the table's beginning"
                : "the table's end";
    }

    private List<Piece> pieces(Options.TableRead read, List<Region> regions, byte[][] families, Cuts cuts)
            throws IOException {
        List<Options.Range> ranges = read.ranges();
        if (ranges == null) {
            ranges = new ArrayList<>();
            for (Region region : regions) {
                ranges.add(new Options.Range(region.id, region.start, region.stop, 0, Long.MAX_VALUE));
            }
        }
        List<Piece> pieces = new ArrayList<>();
        for (Options.Range range : ranges) {
            int before = pieces.size();
            for (Region region : regions) {
                byte[] start = later(later(range.start(), region.start), pushdown.start);
                byte[] stop = earlier(earlier(range.stop(), region.stop), pushdown.stop);
                if (stop.length > 0 && Bytes.compareTo(start, stop) >= 0) {
                    continue;
                }
                List<byte[]> points = pushdown.rowsWithin(start, stop);
                if (points != null && points.isEmpty()) {
                    continue;
                }
                int parts = (int) Math.min(10_000, points != null ? 1 : region.bytes / options.splitBytes + 1);
                List<byte[]> bounds = new ArrayList<>();
                bounds.add(start);
                if (parts > 1) {
                    bounds.addAll(cuts.find(region, start, stop, parts));
                }
                bounds.add(stop);
                for (int i = 1; i < bounds.size(); i++) {
                    pieces.add(new Piece(read.table(), range.id(), bounds.get(i - 1), bounds.get(i), range.from(),
                            range.to(), families, region.bytes / (bounds.size() - 1), region.server, region.files));
                }
            }
            if (pieces.size() == before && read.ranges() != null) {
                // A range that was asked for is answered, if only with its end.
                pieces.add(new Piece(read.table(), range.id(), range.start(), range.stop(), range.from(), range.to(),
                        new byte[0][], 0, null, null));
            }
        }
        return pieces;
    }

    private static byte[] later(byte[] one, byte[] other) {
        return Bytes.compareTo(one, other) >= 0 ? one : other;
    }

    private static byte[] earlier(byte[] one, byte[] other) {
        if (one.length == 0) {
            return other;
        }
        return other.length == 0 || Bytes.compareTo(one, other) <= 0 ? one : other;
    }
}
