package lowtide.connector;

import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.hbase.Cell;

/**
 * Cells in HBase's order, in batches. All cells of a batch are of one row; a row may take many batches:
 * compare the rows. Cells stay valid while the source is open.
 */
interface CellSource extends Closeable {
    /** Moves to the next batch, which has at least one cell; false at the end. */
    boolean advance() throws IOException;

    /** The batch; entries from {@link #size()} on mean nothing. The array may be used again for the next batch. */
    Cell[] cells();

    int size();

    /** Whether the batch is known to be the last of its row. */
    default boolean endsRow() {
        return false;
    }
}
