package lowtide.connector;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;

/** Reads pieces one after the other, each by a reader of its own; one is open at a time. */
final class BundleReader implements PartitionReader<InternalRow> {
    /** Makes the reader of a piece. */
    interface Opening {
        PieceReader open(Piece piece);
    }

    private final Piece[] pieces;
    private final Opening opening;
    private PieceReader reader;
    private int next;
    private long cells;
    private long bytes;

    BundleReader(Bundle bundle, Opening opening) {
        this.pieces = bundle.pieces();
        this.opening = opening;
    }

    @Override
    public boolean next() throws IOException {
        while (true) {
            if (reader != null && reader.next()) {
                return true;
            }
            close();
            if (next == pieces.length) {
                return false;
            }
            reader = opening.open(pieces[next++]);
        }
    }

    @Override
    public InternalRow get() {
        return reader.get();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
        return Metrics.read(cells + (reader == null ? 0 : reader.cells()), bytes + (reader == null ? 0 : reader.bytes()));
    }

    @Override
    public void close() throws IOException {
        if (reader == null) {
            return;
        }
        cells += reader.cells();
        bytes += reader.bytes();
        PieceReader done = reader;
        reader = null;
        done.close();
    }
}
