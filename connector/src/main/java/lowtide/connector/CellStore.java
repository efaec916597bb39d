package lowtide.connector;

import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.hbase.client.Scan;

/** Where cells are read from: a live table, or one region of an HBase snapshot. */
interface CellStore extends Closeable {
    /** Opens one more scanner; several may be open at a time. */
    CellSource open(Scan scan) throws IOException;

    /** Opens one that may leave out what does not show at a read point, if something of its column shows. */
    default CellSource openShown(Scan scan, AsOf asOf) throws IOException {
        return open(scan);
    }
}
