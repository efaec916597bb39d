package lowtide.connector;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hbase.HConstants;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.filter.FirstKeyOnlyFilter;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * Finds rows that cut a key range of a live table into parts, from the keys alone: HBase tells no client the index of
 * its files. It halves between the first and the last row that are really there, two small reads a cut; parts are even
 * where keys are spread evenly, also when only few byte values occur, as in decimal numbers.
 */
final class TableProbe implements Closeable {
    private static final int DIGITS = 7;

    private final Table table;

    TableProbe(Connection connection, TableName name) throws IOException {
        this.table = connection.getTable(name);
    }

    /** Up to {@code parts - 1} rows, ascending, each above {@code start} and below {@code stop}. */
    List<byte[]> cuts(byte[] start, byte[] stop, int parts) throws IOException {
        List<byte[]> cuts = new ArrayList<>();
        byte[] first = firstFrom(start, stop);
        if (first != null) {
            halve(first, lastBefore(start, stop), parts, cuts);
        }
        return cuts;
    }

    private void halve(byte[] first, byte[] last, int parts, List<byte[]> cuts) throws IOException {
        if (parts < 2 || last == null || Bytes.compareTo(first, last) >= 0) {
            return;
        }
        byte[] cut = firstFrom(middle(first, last), HConstants.EMPTY_END_ROW);
        if (cut == null || Bytes.compareTo(cut, first) <= 0 || Bytes.compareTo(cut, last) > 0) {
            return;
        }
        halve(first, lastBefore(first, cut), parts / 2, cuts);
        cuts.add(cut);
        halve(cut, last, parts - parts / 2, cuts);
    }

    /** Halfway between two rows, read as fractions. */
    static byte[] middle(byte[] low, byte[] high) {
        int common = Arrays.mismatch(low, high);
        if (common < 0) {
            return low;
        }
        long sum = digits(low, common) + digits(high, common);
        long half = sum / 2 + sum % 2;
        byte[] middle = Arrays.copyOf(high, common + DIGITS);
        for (int i = DIGITS - 1; i >= 0; i--) {
            middle[common + i] = (byte) half;
            half >>>= 8;
        }
        return middle;
    }

    private static long digits(byte[] row, int from) {
        long digits = 0;
        for (int i = from; i < from + DIGITS; i++) {
            digits = digits << 8 | (i < row.length ? row[i] & 0xFF : 0);
        }
        return digits;
    }

    private byte[] firstFrom(byte[] start, byte[] stop) throws IOException {
        return only(new Scan().withStartRow(start).withStopRow(stop));
    }

    private byte[] lastBefore(byte[] start, byte[] stop) throws IOException {
        return only(new Scan().withStartRow(stop, false).withStopRow(start, true).setReversed(true));
    }

    private byte[] only(Scan scan) throws IOException {
        scan.setFilter(new FirstKeyOnlyFilter()).setOneRowLimit().setCacheBlocks(false);
        try (ResultScanner scanner = table.getScanner(scan)) {
            Result result = scanner.next();
            return result == null || result.isEmpty() ? null : result.getRow();
        }
    }

    @Override
    public void close() throws IOException {
        table.close();
    }
}
