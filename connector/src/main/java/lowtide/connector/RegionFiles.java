package lowtide.connector;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hbase.Cell;
import org.apache.hadoop.hbase.CellUtil;
import org.apache.hadoop.hbase.PrivateCellUtil;
import org.apache.hadoop.hbase.io.hfile.HFile;
import org.apache.hadoop.hbase.io.hfile.HFileBlock;
import org.apache.hadoop.hbase.io.hfile.HFileBlockIndex;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HStore;
import org.apache.hadoop.hbase.regionserver.HStoreFile;
import org.apache.hadoop.hbase.util.Bytes;

/** The files of an open region of an HBase snapshot, to find rows that cut it evenly, whatever its keys look like. */
final class RegionFiles {
    /** Halvings of the key space a cut; after that it is taken as it is. */
    private static final int HALVINGS = 48;
    /** How far off a cut may be, as a share of a part. */
    private static final double TOLERANCE = 0.05;

    private final List<HFile.Reader> files = new ArrayList<>();
    private byte[] first;
    private byte[] last;

    RegionFiles(HRegion region) throws IOException {
        for (HStore store : region.getStores()) {
            for (HStoreFile file : store.getStorefiles()) {
                file.initReader();
                Cell low = file.getFirstKey().orElse(null);
                Cell high = file.getLastKey().orElse(null);
                if (low == null || high == null) {
                    continue;
                }
                files.add(file.getReader().getHFileReader());
                byte[] lowRow = CellUtil.cloneRow(low);
                byte[] highRow = CellUtil.cloneRow(high);
                first = first == null || Bytes.compareTo(lowRow, first) < 0 ? lowRow : first;
                last = last == null || Bytes.compareTo(highRow, last) > 0 ? highRow : last;
            }
        }
    }

    /** Up to {@code parts - 1} rows, ascending, strictly within [start, stop). */
    List<byte[]> cuts(byte[] start, byte[] stop, int parts) throws IOException {
        List<byte[]> cuts = new ArrayList<>();
        if (files.isEmpty()) {
            return cuts;
        }
        byte[] low = Bytes.compareTo(start, first) > 0 ? start : first;
        byte[] high = stop.length > 0 && Bytes.compareTo(stop, last) < 0 ? stop : last;
        if (Bytes.compareTo(low, high) >= 0) {
            return cuts;
        }
        double from = position(low);
        double part = (position(high) - from) / parts;
        for (int i = 1; i < parts; i++) {
            byte[] cut = rowAt(from + i * part, part * TOLERANCE, low, high);
            if (cut != null && Bytes.compareTo(cut, cuts.isEmpty() ? low : cuts.get(cuts.size() - 1)) > 0) {
                cuts.add(cut);
            }
        }
        return cuts;
    }

    /** A row whose position is about the wanted one; null if there is none between the bounds. */
    private byte[] rowAt(double wanted, double tolerance, byte[] low, byte[] high) throws IOException {
        byte[] best = null;
        for (int i = 0; i < HALVINGS; i++) {
            byte[] middle = TableProbe.middle(low, high);
            if (Bytes.compareTo(middle, low) <= 0 || Bytes.compareTo(middle, high) >= 0) {
                break;
            }
            best = middle;
            double position = position(middle);
            if (Math.abs(position - wanted) <= tolerance) {
                break;
            }
            if (position < wanted) {
                low = middle;
            } else {
                high = middle;
            }
        }
        return best;
    }

    /** The bytes of all files that lie before a row, to the block. */
    private double position(byte[] row) throws IOException {
        double position = 0;
        Cell key = PrivateCellUtil.createFirstOnRow(row);
        for (HFile.Reader file : files) {
            HFileBlockIndex.BlockIndexReader index = file.getDataBlockIndexReader();
            HFileBlock block = index.seekToDataBlock(key, null, true, true, false,
                    file.getEffectiveEncodingInCache(false), file);
            if (block != null) {
                position += block.getOffset();
                block.release();
            }
        }
        return position;
    }
}
